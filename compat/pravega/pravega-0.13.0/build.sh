# sh -eu build.sh OUT CACHE: puts the server into OUT. Maven keeps what it fetched itself.
mvn --batch-mode --quiet --no-transfer-progress dependency:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$1/lib"
cp logback.xml "$1/"
: > "$1/empty.properties"    # there must be a file of settings; -D sets them all
cat > "$1/run" <<'RUN'
#!/bin/sh
# run JAVA_OPTIONS…: serves until it is ended. All data are in memory.
cd "$(dirname "$0")"
exec java -XX:MaxDirectMemorySize=1g -XX:+ExitOnOutOfMemoryError -cp 'lib/*' \
    -Dlogback.configurationFile=logback.xml -Dsinglenode.configurationFile=empty.properties \
    -Dsinglenode.controller.rest.enable=false -Dsinglenode.admin.gateway.enable=false \
    -Dpravegaservice.service.listener.host.nameOrIp=127.0.0.1 \
    -Dpravegaservice.cache.size.max=536870912 "$@" io.pravega.local.LocalPravegaEmulator
RUN
chmod +x "$1/run"
