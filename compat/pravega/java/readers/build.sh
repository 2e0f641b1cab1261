# sh -eu build.sh OUT CACHE: puts the program into OUT, once for each version of the client.
# What is in newest/ needs calls that the oldest client does not have.
for version in 0.8.0 0.13.0; do
    mvn --batch-mode --quiet --no-transfer-progress dependency:copy-dependencies \
        "-Dclient=$version" -DincludeScope=runtime -DoutputDirectory="$1/$version/lib"
    newest=
    [ "$version" = 0.8.0 ] || newest=newest/*.java
    javac -Xlint:-options -nowarn -cp "$1/$version/lib/*" -d "$1/$version/classes" common/*.java $newest
done
cat > "$1/run" <<'RUN'
#!/bin/sh
# run VERSION URI SUFFIX SCENARIO…, as Run.java says.
cd "$(dirname "$0")/$1"
shift
exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp 'classes:lib/*' Run "$@"
RUN
chmod +x "$1/run"
