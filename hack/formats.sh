#!/usr/bin/env bash
# Writes one file of each kind that later versions have to read into testdata/formats/VERSION, with this version of the
# program, as root and in a minute: it records, runs and watches a small program on this machine. The machine has another
# name meanwhile, in a namespace of its own. TestFormats reads them; docs/internals/formats.md says when to add some.
#
#   make build fakenvml && hack/formats.sh 0.1
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
(($# == 1)) || { echo 'usage: hack/formats.sh VERSION' >&2; exit 2; }
((EUID == 0)) || { echo 'formats: this needs root' >&2; exit 1; }
to=$PWD/testdata/formats/$1
[[ ! -e $to ]] || { echo "formats: $to exists: files of a version are never made again" >&2; exit 1; }
[[ -x build/stallspan && -e build/fakenvml/libnvidia-ml.so.1 ]] || { echo 'formats: run make build fakenvml' >&2; exit 1; }
# Its files have the data, so they must be on a disk.
w=$(mktemp -d -p "$PWD/build")
agent=
finish() {
	code=$?
	[[ -z $agent ]] || kill "$agent" 2>/dev/null || true
	wait
	((!code)) || cat "$w/log" >&2
	rm -rf "$w"
}
trap finish EXIT
export XDG_STATE_HOME=$w/state STALLSPAN_SOCKET=$w/s.sock LD_LIBRARY_PATH=$PWD/build/fakenvml
root=$PWD
stallspan() { exec unshare --uts sh -c 'hostname node7; exec "$@"' _ "$root/build/stallspan" "$@"; }
quietly() { (stallspan "$@") >>log 2>&1; }
cd "$w"

# A drive of nobody.
cat >smartctl <<'END'
#!/bin/sh
cat <<'JSON'
{"smartctl": {"version": [7, 4], "exit_status": 0}, "device": {"name": "/dev/sdx", "protocol": "NVMe"}, "model_name": "Example",
 "serial_number": "S1", "firmware_version": "1.0", "smart_status": {"passed": true}, "nvme_smart_health_information_log":
 {"critical_warning": 0, "temperature": 41, "available_spare": 100, "available_spare_threshold": 10, "percentage_used": 3,
 "media_errors": 2, "power_on_hours": 1000}}
JSON
END
chmod 755 smartctl
echo "smart: {smartctl: $w/smartctl, disks: [{device: /dev/sdx}]}" >agent.yaml
(stallspan agent --config agent.yaml >log 2>&1) &
agent=$!
for ((i = 0; i < 100; i++)); do [[ ! -S s.sock ]] || break; sleep 0.1; done
head -c 64M /dev/urandom >data
sync data
# shellcheck disable=SC2016 # the inner shell expands it
train=(sh -c 'for e in 1 2; do echo Epoch $e; dd if=data of=/dev/null bs=1M count=20 iflag=direct 2>/dev/null; sleep 0.4; done')
quietly run -- "${train[@]}"
# An event, because it is slow.
quietly run --slow-epoch 100ms --record recording.gz --report report.json -- "${train[@]}"
# A job of the agent, until two intervals of ten seconds are complete.
quietly mark run --kind custom --name job -- sh -c 'head -c 1M data | sha256sum; sleep 25'
kill "$agent"
wait "$agent" || true
agent=
quietly bench --force ./data # although other programs are watched

mkdir -p "$to"
# The kernel's version says whose machine this is.
zcat recording.gz | sed -E '1s/"kernel":"[^"]*"/"kernel":"linux"/' | gzip --no-name -9 >"$to/recording.jsonl.gz"
# So does the disk's serial number. The checksum, which is optional, would no longer match.
sed -E 's/"checksum":"[^"]*",//; s/serial=[^ "]*/serial=S2/' state/stallspan/ceilings.json >"$to/ceilings.json"
cp report.json state/stallspan/{baseline,drives}.json state/stallspan/history/*.history "$to"
chmod 644 "$to"/*
du --bytes "$to"/*
