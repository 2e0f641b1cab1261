# sh -eu build.sh OUT CACHE: puts the program into OUT. Maven keeps what it fetched itself.
mvn --batch-mode --quiet --no-transfer-progress package -Dbuilt="$1"
cat > "$1/run" <<'RUN'
#!/bin/sh
# Netty looks for fast paths that newer Java refuses to libraries unless it is told otherwise.
exec java -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -jar "$(dirname "$0")/scenarios.jar" "$@"
RUN
chmod +x "$1/run"
