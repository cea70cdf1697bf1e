#!/bin/sh
# A SLURM prolog: announces each job on this node to the Stallspan agent. slurm.conf: Prolog=/etc/slurm/prolog.sh
#
# The window is about the whole machine: the job has no process yet. On nodes with one job, that is the job.
# It must never fail: SLURM drains a node whose prolog does.

state=${STALLSPAN_JOBS:-/run/stallspan-jobs}
stallspan=${STALLSPAN:-/usr/local/bin/stallspan}

[ -n "$SLURM_JOB_ID" ] && [ -x "$stallspan" ] || exit 0
mkdir -p "$state" && chmod 700 "$state" || exit 0
[ -e "$state/$SLURM_JOB_ID" ] && exit 0 # each step of a job may run the prolog again

# No process has the id 4194304, the limit of Linux. Without it, the window would be about this shell.
set -- --kind custom --name "job $SLURM_JOB_ID" --pid 4194304 \
	--attribute "slurm.job.id=$SLURM_JOB_ID" --attribute "slurm.job.user=${SLURM_JOB_USER:-unknown}"
[ -n "$SLURM_JOB_PARTITION" ] && set -- "$@" --attribute "slurm.job.partition=$SLURM_JOB_PARTITION"

# SLURM gives the GPUs of the job on this node as indices; windows name them by their ids.
gpus=${SLURM_JOB_GPUS:-$CUDA_VISIBLE_DEVICES}
for gpu in $(echo "$gpus" | tr , ' '); do
	case $gpu in
	GPU-* | MIG-*) id=$gpu ;;
	*) id=$(timeout 5 nvidia-smi --id="$gpu" --query-gpu=uuid --format=csv,noheader 2>/dev/null) || id= ;;
	esac
	[ -n "$id" ] && set -- "$@" --gpu "$id"
done
[ -n "$gpus" ] && set -- "$@" --attribute "slurm.job.gpus=$gpus"

if id=$(timeout 5 "$stallspan" mark begin "$@"); then
	echo "$id" >"$state/$SLURM_JOB_ID"
fi
exit 0
