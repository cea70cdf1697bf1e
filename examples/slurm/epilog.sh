#!/bin/sh
# A Slurm epilog: ends the window that prolog.sh began, and logs its verdict. slurm.conf: Epilog=/etc/slurm/epilog.sh
# It never fails, because Slurm drains a node whose epilog does, and takes at most 11 seconds.

state=${STALLSPAN_JOBS:-/run/stallspan-jobs}
stallspan=${STALLSPAN:-/usr/local/bin/stallspan}
[ -x "$stallspan" ] || stallspan=/usr/bin/stallspan

case $SLURM_JOB_ID in '' | *[!0-9]*) exit 0 ;; esac
[ -r "$state/$SLURM_JOB_ID" ] || exit 0
id=$(cat "$state/$SLURM_JOB_ID")
rm -f "$state/$SLURM_JOB_ID"

# A job that failed counts as cut, so that no baseline learns from it.
set -- "$id"
[ "${SLURM_JOB_EXIT_CODE:-0}" = 0 ] || set -- --failed "$id"
if verdict=$(timeout -k 1 10 "$stallspan" mark end "$@" 2>/dev/null); then
	logger -t stallspan "job $SLURM_JOB_ID of ${SLURM_JOB_USER:-unknown}: $verdict" 2>/dev/null
fi
exit 0
