# sh -eu build.sh OUT CACHE: puts libraries and what stands for Pravega's servers into OUT.
mvn --batch-mode --quiet --no-transfer-progress dependency:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$1/lib"
cp -r stands "$1/stands"
cat > "$1/run" <<'RUN'
#!/bin/sh
# run FOLDER: prints the folder that it is in; compat/pravega/java/own.py compiles the rest.
dirname "$0"
RUN
chmod +x "$1/run"
