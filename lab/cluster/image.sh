#!/usr/bin/env bash
# Makes an image of one static program for the cluster of hack/cluster.sh.
#
#   lab/cluster/image.sh pause|work FILE.tar
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
name=$1 out=$2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/files/{usr/bin,tmp}
case $name in
pause)
	tag=localhost/pause:1 entry=/usr/bin/pause
	echo 'int pause(void); int main(void) { for (;;) pause(); }' | gcc -static -x c -o "$root/files/usr/bin/pause" -
	;;
work)
	tag=localhost/work:test entry=/usr/bin/work
	CGO_ENABLED=0 go build -C lab -o "$root/files/usr/bin/work" ./cluster/work
	;;
esac
tar -C "$root/files" --owner 0 --group 0 -cf "$root/layer.tar" .
sum() { sha256sum "$1" | cut -d' ' -f1; }
cat >"$root/config.json" <<END
{"architecture": "$(go env GOARCH)", "os": "linux",
 "config": {"Entrypoint": ["$entry"], "Env": ["PATH=/usr/bin"]},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$(sum "$root/layer.tar")"]}}
END
echo "[{\"Config\": \"config.json\", \"RepoTags\": [\"$tag\"], \"Layers\": [\"layer.tar\"]}]" >"$root/manifest.json"
tar -C "$root" -cf "$out" manifest.json config.json layer.tar
