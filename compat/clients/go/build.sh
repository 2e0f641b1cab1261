# sh -eu build.sh OUT CACHE: puts the program into OUT. Go keeps what it compiled and fetched itself.
exec go build -trimpath -mod=readonly -buildvcs=false -o "$1/run" .
