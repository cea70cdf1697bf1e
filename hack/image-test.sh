#!/usr/bin/env bash
# Runs the images of hack/image.sh in a folder, without a network: with podman and with a containerd of its own, as the
# image's user, without any right and with a read-only root. It needs root, podman, containerd and runc, which Debian has;
# with qemu-user-static and gcc it also starts programs for arm64, and looks for a GPU through the stand-in for the driver.
#
#   hack/image-test.sh FOLDER [TITLE...]     TITLE is stallspan or otelcol-stallspan; by default both
set -euo pipefail
folder=$(realpath "${1:-build/image}")
shift || true
cd "$(dirname "${BASH_SOURCE[0]}")/.."
(($#)) || set -- stallspan otelcol-stallspan
PATH="$PATH:/usr/sbin"
missing=()
((EUID == 0)) || missing+=(root)
for tool in podman containerd ctr runc; do command -v "$tool" >/dev/null || missing+=("$tool"); done
if ((${#missing[@]})); then
	echo "the images are not run: this needs ${missing[*]}" >&2
	exit 0
fi

w=$(mktemp -d /tmp/stallspan-image.XXXXXX)
containerd=
finish() {
	code=$?
	set +e
	if ((code)); then
		tail -n 20 "$w"/*.log >&2
		echo "image-test: ${failed:-a command failed: see above}" >&2 # again, because the log is long
	fi
	podman rm --all --force >/dev/null 2>&1
	[[ -z $containerd ]] || kill "$containerd" 2>/dev/null
	[[ -z $containerd ]] || wait "$containerd" 2>/dev/null
	umount "$w"/storage/overlay 2>/dev/null
	rm -rf "$w"
}
podman() {
	command podman --runtime runc --root "$w/storage" --runroot "$w/run" --cgroup-manager cgroupfs --events-backend none "$@"
}
trap finish EXIT
failed=
fail() { failed=$*; echo "image-test: $*" >&2; exit 1; }
trap 'failed="line $LINENO: $BASH_COMMAND"' ERR
same() { [[ $2 == "$3" ]] || fail "got $1 ${2:-nothing}, want $3"; }
until_true() {
	for ((n = 0; n < 300; n++)); do
		if "$@" >/dev/null 2>&1; then return; fi
		sleep 0.2
	done
	fail "got nothing in a minute, want: $*"
}

# Limits below the default ones, which a root without CAP_SYS_RESOURCE cannot set.
limits=(--ulimit nofile=4096:4096 --ulimit nproc=4096:4096)
confined=("${limits[@]}" --network none --read-only --cap-drop all --security-opt no-new-privileges)

# unpack writes the files of an image for docker into a folder.
unpack() {
	mkdir -p "$2" "$2.layers"
	tar -xf "$1" -C "$2.layers"
	grep -oE '[0-9a-f]{64}\.tar\.gz' "$2.layers/manifest.json" |
		while read -r layer; do tar -xf "$2.layers/$layer" -C "$2"; done
}

cat >"$w/containerd.toml" <<CONFIG
version = 2
root = "$w/containerd"
state = "$w/containerd-state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "$w/containerd.sock"
CONFIG
containerd --config "$w/containerd.toml" >"$w/containerd.log" 2>&1 &
containerd=$!
ctr() { command ctr --address "$w/containerd.sock" "$@"; }
until_true ctr version

# A config of a Collector that sends to nobody.
cat >"$w/collector.yaml" <<'CONFIG'
receivers: {stallspan: {}}
processors: {stallspan: {}}
exporters: {debug: {}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [stallspan], exporters: [debug]}
    traces: {receivers: [stallspan], processors: [stallspan], exporters: [debug]}
CONFIG
chmod 755 "$w"
chmod 644 "$w/collector.yaml"

case $(uname -m) in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; esac
for title; do
	[[ -e $folder/$title.oci.tar ]] || fail "got no $folder/$title.oci.tar, want it from make image"

	# What is in it: one program, and no shell.
	unpack "$folder/$title.$arch.docker.tar" "$w/$title"
	same "programs in $title" "$(cd "$w/$title" && find . -path ./usr/lib -prune -o -path ./usr/lib64 -prune -o -type f -perm /111 -print)" "./usr/bin/$title"
	# shellcheck disable=SC2010 # the names are fixed
	same "writable files in $title" "$(find "$w/$title" -perm /022 ! -type l -printf '%P %m\n')" 'tmp 1777'

	image=$(podman load --quiet --input "$folder/$title.oci.tar" | sed 's/.*: //')
	[[ $image == */$title:* ]] || fail "got the name $image, want it to end in $title and a version"

	# The same program gives the same bytes.
	of() { podman image inspect "$image" --format "$1"; }
	SOURCE_DATE_EPOCH=$(of '{{.Created.Unix}}') REVISION=$(of '{{index .Labels "org.opencontainers.image.revision"}}') \
		hack/image.sh "$w/again" "${image##*:}" "$title" "$arch=$w/$title/usr/bin/$title" >/dev/null
	cmp "$w/again/$title.$arch.docker.tar" "$folder/$title.$arch.docker.tar"

	# podman
	podman run --rm "${confined[@]}" "$image" --version
	if podman run --rm "${confined[@]}" --entrypoint /bin/sh "$image" -c true 2>/dev/null; then fail 'got a shell, want none'; fi
	podman run --detach --name "$title" "${confined[@]}" --volume "$title:/run/stallspan" \
		--volume "$w/collector.yaml:/etc/stallspan/collector.yaml:ro" "$image" >/dev/null
	serves() { podman logs "$title" 2>&1 | grep -q /run/stallspan/stallspan.sock; }
	until_true serves
	same 'the user' "$(podman top "$title" huser | tail -n 1)" 65532
	same 'its capabilities' "$(podman top "$title" capeff | tail -n 1)" none
	if [[ $title == stallspan ]]; then
		podman exec "$title" stallspan mark run --kind custom --name inside -- stallspan --version >/dev/null
		podman exec "$title" stallspan ls | grep inside
		podman run --rm "${confined[@]}" "$image" check | head -n 1
	fi
	podman stop --time 40 "$title" >/dev/null
	same 'the exit code' "$(podman inspect "$title" --format '{{.State.ExitCode}}')" 0

	# The driver's library, at the place where NVIDIA's toolkit mounts it.
	if [[ $title == stallspan ]] && command -v gcc >/dev/null; then
		gcc -shared -fPIC -O2 -o "$w/nvml.so" testdata/fakenvml/fakenvml.c -lpthread
		podman run --rm "${confined[@]}" --volume "$w/nvml.so:/usr/lib/$(uname -m)-linux-gnu/libnvidia-ml.so.1:ro" \
			"$image" check >"$w/check"
		grep -q '^ok  *GPU' "$w/check" || fail "got $(grep GPU "$w/check"), want a GPU"
	fi

	# containerd
	ctr images import "$folder/$title.oci.tar" >/dev/null
	same 'the version with containerd' "$(ctr run --rm "$image" version "/usr/bin/$title" --version)" \
		"$(podman run --rm "${confined[@]}" "$image" --version)"
	# Programs for arm64 start, with the image's own C library.
	if [[ $arch == amd64 && -e $folder/$title.arm64.docker.tar ]] && command -v qemu-aarch64-static >/dev/null; then
		unpack "$folder/$title.arm64.docker.tar" "$w/$title.arm64"
		qemu-aarch64-static -L "$w/$title.arm64" "$w/$title.arm64/usr/bin/$title" --version
	fi
	echo "image-test: podman and containerd ran $image ($arch, $(stat -c %s "$folder/$title.$arch.docker.tar" |
		awk '{printf "%.1f", $1 / 1e6}') MB)"
done
