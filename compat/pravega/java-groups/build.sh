# sh -eu build.sh OUT CACHE: puts the program into OUT. Maven keeps what it fetched itself.
mvn --batch-mode --quiet --no-transfer-progress dependency:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$1/lib"
javac -cp "$1/lib/*" -d "$1/classes" *.java io/pravega/client/stream/impl/*.java
cat > "$1/run" <<'RUN'
#!/bin/sh
# run URI SCOPE [USER PASSWORD], as Groups.java says.
cd "$(dirname "$0")"
exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp 'classes:lib/*' Groups "$@"
RUN
chmod +x "$1/run"
