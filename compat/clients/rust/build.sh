# sh -eu build.sh OUT CACHE: puts the program into OUT, what cargo compiled stays in CACHE.
cargo build --quiet --locked --target-dir "$2"
cp "$2/debug/scenarios" "$1/run"
