# Installs the pinned client beside the program: sh -eu build.sh OUT CACHE
cp package.json package-lock.json *.cjs "$1"
cd "$1"
npm ci --no-audit --no-fund --ignore-scripts --cache "$2/npm"
cat > run <<'RUN'
#!/bin/sh
exec node "$(dirname "$0")/program.cjs" "$@"
RUN
chmod +x run
