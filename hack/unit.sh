#!/usr/bin/env bash
# Runs packaging/stallspan.service under a real systemd: it boots Debian in systemd-nspawn, with all capabilities that the
# unit's first lines offer, and looks at the agent and its helpers. It needs root, debootstrap and systemd-container, and
# takes three minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if ((EUID != 0)) || ! command -v debootstrap >/dev/null || ! command -v systemd-nspawn >/dev/null; then
	echo "the unit is not run by systemd: this needs root, debootstrap and systemd-container" >&2
	exit 0
fi
root=build/unit-root
boot=
finish() {
	[[ -z $boot ]] || kill "$boot" 2>/dev/null || true
	[[ -z $boot ]] || wait "$boot" 2>/dev/null || true
}
trap finish EXIT
[[ -e $root/sbin/init ]] || debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus bookworm "$root" >/dev/null
go build -o "$root/usr/bin/stallspan" .
install -D -m 0644 -t "$root/etc/stallspan" packaging/etc/agent.yaml packaging/etc/agent.env
cp packaging/stallspan.service "$root/etc/systemd/system/"
mkdir -p "$root/etc/systemd/system/stallspan.service.d"
printf '[Service]\nAmbientCapabilities=CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_BPF CAP_PERFMON\n' \
	>"$root/etc/systemd/system/stallspan.service.d/rights.conf"
chroot "$root" id stallspan >/dev/null 2>&1 ||
	chroot "$root" useradd --system --no-create-home --shell /usr/sbin/nologin stallspan
chroot "$root" systemctl --quiet enable stallspan

systemd-nspawn --quiet --directory="$root" --machine=stallspan-unit --capability=all --register=no --keep-unit --boot \
	</dev/null >build/unit.log 2>&1 &
boot=$!

# inside runs a command in the namespaces of the container.
inside() { nsenter --target "$init" --mount --uts --ipc --net --pid -- "$@"; }
fail() {
	echo "unit: $*" >&2
	inside journalctl --unit stallspan --no-pager >&2 || tail build/unit.log >&2
	exit 1
}

init=
for ((i = 0; i < 120; i++)); do
	init=$(pgrep --parent "$boot" | head -1) || true
	if [[ -n $init ]] && inside systemctl is-active --quiet stallspan 2>/dev/null; then break; fi
	sleep 1
done
[[ -n $init ]] || fail "got no container in two minutes, see build/unit.log"
inside systemctl is-active --quiet stallspan || fail "got a unit that is not active, want it active"

# The agent has no capability. Each helper has its own two. All are under a seccomp filter.
rights() { inside sh -c "for p in \$(cat /sys/fs/cgroup/systemd/system.slice/stallspan.service/cgroup.procs \
	/sys/fs/cgroup/system.slice/stallspan.service/cgroup.procs 2>/dev/null); do \
	sed -n 's/^CapEff:\t//p; s/^Seccomp:\t/ /p' /proc/\$p/status | tr -d '\n'; echo; done" | sort | uniq -c | sed 's/^ *//'; }
want='1 0000000000000000 2
2 0000000000080004 2
2 000000c000000000 2'
[[ $(rights) == "$want" ]] || fail "got the rights $(rights), want $want"

inside env STALLSPAN_SOCKET=/run/stallspan/stallspan.sock /usr/bin/stallspan mark run --kind custom --name unit \
	-- sleep 1 || fail "got an error from the socket, want a window"
score=$(inside systemd-analyze security stallspan --no-pager | tail -1)
echo "$score"
inside systemctl kill --signal=KILL --kill-who=main stallspan
sleep 10
inside systemctl is-active --quiet stallspan || fail "got no agent ten seconds after SIGKILL, want it started again"
inside systemctl stop stallspan
result=$(inside systemctl show --property=Result --value stallspan)
[[ $result == success ]] || fail "got the result $result of stopping it, want success"
echo "unit: systemd $(inside systemctl --version | head -1 | cut -d' ' -f2) ran it, started it again and stopped it"
