#!/usr/bin/env bash
# Makes a small image for the cluster of hack/cluster.sh: a program, and the C library of this machine if it needs one.
#
#   hack/cluster/image.sh pause|collector|agent|work FILE.tar
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
name=$1 out=$2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/files/{usr/bin,tmp,run,etc/stallspan,usr/lib/x86_64-linux-gnu,lib64}
ln -s usr/lib "$root/files/lib"
case $name in
pause)
	tag=localhost/pause:1 entry=/usr/bin/pause
	echo 'int pause(void); int main(void) { for (;;) pause(); }' | gcc -static -x c -o "$root/files/usr/bin/pause" -
	;;
collector)
	tag=localhost/otelcol-stallspan:test entry=/usr/bin/otelcol-stallspan
	cp build/otelcol-stallspan "$root/files/usr/bin/"
	;;
agent)
	tag=localhost/stallspan:test entry=/usr/bin/stallspan
	cp build/stallspan "$root/files/usr/bin/"
	;;
work)
	tag=localhost/work:test entry=/usr/bin/work
	CGO_ENABLED=0 go build -o "$root/files/usr/bin/work" ./test/cluster/work
	;;
esac
# ldd lists the libraries, and the loader itself.
ldd "$root/files$entry" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
	case $library in
	*/ld-linux*) cp -L "$library" "$root/files/lib64/" ;;
	*) cp -L "$library" "$root/files/usr/lib/x86_64-linux-gnu/" ;;
	esac
done || true
tar -C "$root/files" --owner 0 --group 0 -cf "$root/layer.tar" .
sum() { sha256sum "$1" | cut -d' ' -f1; }
cat >"$root/config.json" <<END
{"architecture": "amd64", "os": "linux",
 "config": {"Entrypoint": ["$entry"], "Env": ["PATH=/usr/bin"]},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$(sum "$root/layer.tar")"]}}
END
echo "[{\"Config\": \"config.json\", \"RepoTags\": [\"$tag\"], \"Layers\": [\"layer.tar\"]}]" >"$root/manifest.json"
tar -C "$root" -cf "$out" manifest.json config.json layer.tar
