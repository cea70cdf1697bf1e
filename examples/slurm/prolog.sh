#!/bin/sh
# A Slurm prolog: announces each job on this node to the Stallspan agent. slurm.conf: Prolog=/etc/slurm/prolog.sh
#
# The window is about the whole machine: the job has no process yet. On nodes with one job, that is the job.
# It never fails, because Slurm drains a node whose prolog does, and takes at most 15 seconds, because the job waits for
# it. All it uses comes from slurmd, which passes a prolog nothing of the user's environment.

state=${STALLSPAN_JOBS:-/run/stallspan-jobs}
stallspan=${STALLSPAN:-/usr/local/bin/stallspan}
[ -x "$stallspan" ] || stallspan=/usr/bin/stallspan
driver=${STALLSPAN_DRIVER:-/proc/driver/nvidia/gpus}

case $SLURM_JOB_ID in '' | *[!0-9]*) exit 0 ;; esac
[ -x "$stallspan" ] || exit 0
umask 077
mkdir -p "$state" 2>/dev/null && chmod 700 "$state" || exit 0
[ -e "$state/$SLURM_JOB_ID" ] && exit 0 # each step of a job may run the prolog again

begin() { timeout -k 1 4 "$stallspan" mark begin "$@" 2>"$state/refused.$SLURM_JOB_ID"; }

# With MIG, only CUDA's variable names the part of a GPU.
case $CUDA_VISIBLE_DEVICES in
*MIG-* | *GPU-*) gpus=$CUDA_VISIBLE_DEVICES ;;
*) gpus=${SLURM_JOB_GPUS:-$CUDA_VISIBLE_DEVICES} ;;
esac

# No process has the id 4194304, the limit of Linux. Without it, the window would be about this shell.
set -- --kind custom --name "job $SLURM_JOB_ID" --pid 4194304 \
	--attribute "slurm.job.id=$SLURM_JOB_ID" --attribute "slurm.job.user=${SLURM_JOB_USER:-unknown}"
[ -n "$SLURM_JOB_PARTITION" ] && set -- "$@" --attribute "slurm.job.partition=$SLURM_JOB_PARTITION"
[ -n "$gpus" ] && set -- "$@" --attribute "slurm.job.gpus=$gpus"

# Slurm numbers GPUs as /dev/nvidiaN does, and windows name them by their ids. The driver has both. The numbers of
# nvidia-smi are the same on most machines.
ids=
[ -z "$gpus" ] || ids=$(cat "$driver"/*/information 2>/dev/null |
	awk '/^GPU UUID:/ {id = $3} /^Device Minor:/ && id !~ /[?]/ {print $3, id}')
[ -z "$gpus" ] || [ -n "$ids" ] ||
	ids=$(timeout -k 1 4 nvidia-smi --query-gpu=index,uuid --format=csv,noheader 2>/dev/null | tr -d ,)
known=
for gpu in $(echo "$gpus" | tr , ' '); do
	case $gpu in
	GPU-* | MIG-*) id=$gpu ;;
	*) id=$(echo "$ids" | awk -v n="$gpu" '$1 == n {print $2}') ;;
	esac
	[ -n "$id" ] && known="$known --gpu $id"
done

# An agent that sees other GPUs refuses these: then the window is about all that it sees.
# shellcheck disable=SC2086 # a list of flags
if id=$(begin "$@" $known) || { [ -n "$known" ] && id=$(begin "$@"); }; then
	echo "$id" >"$state/$SLURM_JOB_ID"
else
	logger -t stallspan "job $SLURM_JOB_ID is not watched: $(tail -n 1 "$state/refused.$SLURM_JOB_ID")" 2>/dev/null
fi
rm -f "$state/refused.$SLURM_JOB_ID"
exit 0
