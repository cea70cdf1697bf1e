#!/bin/sh
# Reads a file from the disk, not from memory, and tells a Collector on this machine of it as one span of OTLP: what a
# program does that OpenTelemetry instruments, in shell. Then look for the span model.load in your backend.
#
#   examples/collector/load.sh FILE      OTLP_HTTP=127.0.0.1:4318
set -eu

file=$1
dd of="$file" oflag=nocache conv=notrunc,fdatasync count=0 2>/dev/null # out of the page cache
begin=$(date +%s%N)
cat "$file" >/dev/null
end=$(date +%s%N)

id=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
curl -sS --fail-with-body "http://${OTLP_HTTP:-127.0.0.1:4318}/v1/traces" -H 'Content-Type: application/json' -d @- <<JSON
{"resourceSpans": [{
  "resource": {"attributes": [
    {"key": "service.name", "value": {"stringValue": "load.sh"}},
    {"key": "host.name", "value": {"stringValue": "$(hostname)"}}]},
  "scopeSpans": [{"spans": [{
    "traceId": "$(expr "$id" : '\(.\{32\}\)')", "spanId": "$(expr "$id" : '.\{32\}\(.*\)')",
    "name": "model.load", "kind": 1, "startTimeUnixNano": "$begin", "endTimeUnixNano": "$end",
    "attributes": [{"key": "file.path", "value": {"stringValue": "$file"}}]}]}]}]}
JSON
echo
