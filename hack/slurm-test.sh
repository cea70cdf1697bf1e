#!/usr/bin/env bash
# Tries examples/slurm with Debian's Slurm on this machine: munged, slurmctld and slurmd with a node of two GPUs, and an
# agent that sees these GPUs through the stand-in for the driver. A plain user's job does the demo's work, and its window
# must reach the agent, and its span a backend, with the job, its user, its GPU and a verdict. Nothing may fail a job or
# drain the node. It needs root, and slurm-wlm (with munge), gcc and python3; everything is on loopback and in one folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=$PWD/build/stallspan
missing=()
((EUID == 0)) || missing+=(root)
for tool in slurmctld slurmd munged sbatch gcc python3; do
	PATH="$PATH:/usr/sbin" command -v "$tool" >/dev/null || missing+=("$tool")
done
if ((${#missing[@]})); then
	echo "the scripts for Slurm are not tried: this needs ${missing[*]}" >&2
	exit 0
fi
PATH="$PATH:/usr/sbin"

w=$(mktemp -d /tmp/stallspan-slurm.XXXXXX) # short, for sockets
pids=()
finish() {
	code=$?
	set +e
	if ((code)); then tail -n 20 "$w"/*.log "$w"/home/*.out >&2; fi
	[[ ! -v SLURM_CONF ]] || scancel --user=nobody 2>/dev/null
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
		kill -CONT "${pids[i]}" 2>/dev/null
		kill "${pids[i]}" 2>/dev/null
		wait "${pids[i]}" 2>/dev/null
	done
	rm -rf "$w"
	for group in /sys/fs/cgroup/*/slurm_"$node"; do # slurmd leaves them
		[[ ! -d $group ]] || find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null
	done
}
trap finish EXIT
fail() { echo "slurm-test: $*" >&2; exit 1; }
# until_true waits up to two minutes for a command: the machine may be busy.
until_true() {
	for ((n = 0; n < 600; n++)); do
		if "$@" >/dev/null 2>&1; then return; fi
		sleep 0.2
	done
	fail "got nothing in two minutes, want: $*"
}
# start NAME COMMAND... runs a daemon until the end.
start() {
	local name=$1
	shift
	"$@" </dev/null >"$w/$name.log" 2>&1 &
	pids+=($!)
}

node=$(hostname -s)
install -d -m 0755 "$w"
install -d -m 0777 "$w/home"
mkdir "$w"/{state,spool,library,kept}
gcc -shared -fPIC -O2 -o "$w/library/libnvidia-ml.so.1" testdata/fakenvml/fakenvml.c -lpthread
install -m 0755 "$program" "$w/stallspan"

# Two GPUs, whose minor numbers are not in the order of their indices, as on real machines with switches.
uuids=(GPU-0000aaaa-0000-4000-8000-000000000000 GPU-0000bbbb-0000-4000-8000-000000000001)
printf 'gpu %d uuid=%s utilization=30\n' 0 "${uuids[0]}" 1 "${uuids[1]}" >"$w/gpus"
for minor in 0 1; do
	mknod -m 0600 "$w/nvidia$minor" c 195 "$minor"
	mkdir -p "$w/driver/$minor"
	printf 'GPU UUID: \t %s\nDevice Minor: \t %d\n' "${uuids[1 - minor]}" "$minor" >"$w/driver/$minor/information"
done

# The backend keeps what is posted to it, as it comes.
cat >"$w/backend.py" <<'PYTHON'
import http.server, sys

class Backend(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v1/traces":
            with open(sys.argv[1] + "/spans", "ab") as file:
                file.write(body)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Backend)
with open(sys.argv[1] + "/port", "w") as file:
    file.write("%d\n" % server.server_port)
server.serve_forever()
PYTHON
start backend python3 "$w/backend.py" "$w"
until_true test -s "$w/port"

socket=$w/agent.sock
start agent env -i PATH="$PATH" STALLSPAN_SOCKET="$socket" XDG_STATE_HOME="$w/kept" LD_LIBRARY_PATH="$w/library" \
	FAKENVML_FILE="$w/gpus" OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:$(cat "$w/port")" \
	OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf OTEL_BSP_SCHEDULE_DELAY=500 "$w/stallspan" agent
agent=${pids[-1]}
until_true test -S "$socket"

# slurmd gives a prolog no variables of ours, so these two set them.
for script in prolog epilog; do
	cat >"$w/$script" <<SCRIPT
#!/bin/sh
env >>"$w/environment"
STALLSPAN=$w/stallspan STALLSPAN_SOCKET=$socket STALLSPAN_JOBS=$w/jobs STALLSPAN_DRIVER=$w/driver
export STALLSPAN STALLSPAN_SOCKET STALLSPAN_JOBS STALLSPAN_DRIVER
"$PWD/examples/slurm/$script.sh"
code=\$?
echo "$script \$SLURM_JOB_ID \$code" >>"$w/exits"
exit \$code
SCRIPT
	chmod 755 "$w/$script"
done
head -c 1024 /dev/urandom >"$w/munge.key"
chmod 400 "$w/munge.key"
start munged munged --force --foreground --num-threads=1 --socket="$w/munge.sock" --key-file="$w/munge.key" \
	--pid-file="$w/munge.pid" --log-file="$w/munge.log" --seed-file="$w/munge.seed"
# Where version 1 of cgroups can be written, which Debian's Slurm is told to use, jobs are tracked and confined by them.
track=linuxproc task=none
if [[ -w /sys/fs/cgroup/freezer && -w /sys/fs/cgroup/cpuset && -w /sys/fs/cgroup/memory && -w /sys/fs/cgroup/devices ]]; then
	track=cgroup task=cgroup
	printf '%s\n' CgroupPlugin=cgroup/v1 CgroupMountpoint=/sys/fs/cgroup \
		ConstrainCores=yes ConstrainRAMSpace=yes ConstrainDevices=yes >"$w/cgroup.conf"
fi
ports=$(python3 -c 'import socket
a, b = socket.socket(), socket.socket()
a.bind(("127.0.0.1", 0)); b.bind(("127.0.0.1", 0))
print("SlurmctldPort=%d\nSlurmdPort=%d" % (a.getsockname()[1], b.getsockname()[1]))')
cat >"$w/slurm.conf" <<CONF
ClusterName=stallspan
SlurmctldHost=$node(127.0.0.1)
$ports
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$w/munge.sock
ProctrackType=proctrack/$track
TaskPlugin=task/$task
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation=$w/state
SlurmdSpoolDir=$w/spool
SlurmctldPidFile=$w/slurmctld.pid
SlurmdPidFile=$w/slurmd.pid
SlurmdLogFile=$w/step.log
ReturnToService=2
PrologFlags=Alloc
Prolog=$w/prolog
Epilog=$w/epilog
GresTypes=gpu
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) Gres=gpu:2 State=UNKNOWN
PartitionName=gpu Nodes=ALL Default=YES State=UP
CONF
echo "Name=gpu File=$w/nvidia[0-1]" >"$w/gres.conf"
export SLURM_CONF=$w/slurm.conf
until_true test -S "$w/munge.sock"
start slurmd slurmd -D -f "$w/slurm.conf"
start slurmctld slurmctld -D -f "$w/slurm.conf"
idle() { [[ $(sinfo --noheader --format=%T) == idle ]]; }
until_true idle

# submit SCRIPT runs a job of an ordinary user to its end, and prints its number. The user's variables name another
# program and another job.
submit() {
	printf '#!/bin/sh\n%s\n' "$1" >"$w/job"
	local code=0
	(cd "$w/home" && runuser -u nobody -- env STALLSPAN=/bin/false STALLSPAN_JOBS="$w/home" SLURM_JOB_USER=root \
		SLURM_JOB_ID=99 PATH="$w/home:$PATH" \
		timeout 120 sbatch --parsable --wait --gres=gpu:1 --output="$w/home/%j.out" <"$w/job") || code=$?
	((code != 124)) || fail 'got a job that has not ended in two minutes, want it to run'
}
# window NUMBER prints the report of a job's window that has ended.
window() {
	STALLSPAN_SOCKET=$socket "$w/stallspan" ls --json | python3 -c '
import json, sys
for w in json.load(sys.stdin)["ended"]:
    if w.get("name") == "job " + sys.argv[1]:
        print(json.dumps(w))
        sys.exit()
sys.exit("no window")' "$1"
}
# of KEY reads a value of a report.
of() { python3 -c 'import json, sys; print(json.load(sys.stdin)'"$1"')'; }
same() { [[ $2 == "$3" ]] || fail "got $1 $2, want $3"; }

# 1. The demo's work.
job=$(submit "exec $w/stallspan demo --dir $w/home")
until_true window "$job"
report=$(window "$job")
same 'the scope' "$(of '["scope"]' <<<"$report")" host
same 'unfinished' "$(of '.get("unfinished", False)' <<<"$report")" False
verdict=$(of '["verdict"]' <<<"$report")
[[ $verdict =~ ^(gpu_bound|storage_bound|cpu_bound|mixed)$ ]] || fail "got the verdict $verdict, want one that is known"
# Slurm gives the first device, which is the driver's second GPU.
same 'the GPUs' "$(of '["gpu"]["ids"]' <<<"$report")" "['${uuids[1]}']"
grep -q 'epoch' "$w/home/$job.out" || fail 'got no report of the demo from the job'

# attribute prints an attribute of the span that names a job. In protobuf it is the key, and the value with its length.
attribute() {
	python3 - "$w/spans" "$@" <<'PYTHON'
import re, sys

file, job, name = sys.argv[1:]

def value(span, key):
    found = re.search(re.escape(key.encode()) + rb"\x12.\x0a(.)", span, re.S)
    return span[found.end():found.end() + found[1][0]].decode() if found else None

for span in re.split(rb"(?=job \d+)", open(file, "rb").read()):  # a span begins with its name
    if value(span, "slurm.job.id") == job:
        print(value(span, name))
        sys.exit()
sys.exit("no span of job " + job)
PYTHON
}
until_true attribute "$job" slurm.job.user
same 'the user on the span' "$(attribute "$job" slurm.job.user)" nobody
same 'the GPU on the span' "$(attribute "$job" slurm.job.gpus)" 0
same 'the verdict on the span' "$(attribute "$job" stallspan.verdict)" "$verdict"
echo "slurm-test: job $job of nobody: $verdict"

# 2. A job that fails is cut.
job=$(submit 'cat /proc/self/cgroup; exit 3')
until_true window "$job"
same 'unfinished' "$(window "$job" | of '["unfinished"]')" True

if [[ $task == cgroup ]]; then
	for controller in cpuset devices freezer memory; do
		grep -q ":$controller:/slurm_$node/.*/job_$job/" "$w/home/$job.out" || fail "got a job outside of Slurm's $controller cgroup"
	done
fi

# 3. A job is known from outside: by its cgroup, or else by its environment. The environment has its name in any case.
go build -C tools -o "$w/identify" ./identify
submit '#SBATCH --job-name=train
echo $$ >running; while ! [ -e end ]; do sleep 0.1; done' >"$w/submitted" &
waiting=$!
until_true test -s "$w/home/running"
"$w/identify" "$(cat "$w/home/running")" >"$w/identity.log"
touch "$w/home/end"
wait "$waiting"
job=$(cat "$w/submitted")
claimed=True
[[ $track != cgroup ]] || claimed=False
python3 - "$w/identity.log" "$job" "$claimed" <<'PYTHON'
import json, sys

file, job, claimed = sys.argv[1:]
found = json.load(open(file))
values = {a["Key"]: (a["Value"], a["Claimed"]) for a in found["Attributes"]}
want = {"slurm.job.id": (job, claimed == "True"), "slurm.job.name": ("train", True),
        "process.owner": ("nobody", False)}
got = {key: values.get(key) for key in want}
if got != want:
    sys.exit(f"slurm-test: got {got} in {found}, want {want}")
if claimed == "False" and (found["Kind"], found["Name"], values.get("slurm.step.id")) != (
        "slurm", "job " + job, ("batch", False)):
    sys.exit(f"slurm-test: got {found}, want the step batch of job {job}")
PYTHON

# 4. An agent that hangs, and then none: jobs run, and the node stays.
kill -STOP "$agent"
job=$(submit 'echo ran')
kill -CONT "$agent"
same 'the output with an agent that hangs' "$(cat "$w/home/$job.out")" ran
kill "$agent"
wait "$agent" || true
job=$(submit 'echo ran')
same 'the output without an agent' "$(cat "$w/home/$job.out")" ran
until_true idle
exits() { [[ $(awk '{print $1, $3}' "$w/exits" | sort | uniq -c | xargs) == '5 epilog 0 5 prolog 0' ]]; }
until_true exits

# 5. Nothing came from the user.
if grep -E "/bin/false|^SLURM_JOB_USER=root|^SLURM_JOB_ID=99|^PATH=$w" "$w/environment"; then
	fail "got the user's variables in the prolog, want none"
fi
echo "slurm-test: $(slurmctld -V) ran 5 jobs with the prolog and the epilog, with proctrack/$track and task/$task"
