#!/usr/bin/env python3
"""Reads 4 KiB at random places of a file, in three epochs, and sends a span for each to a Collector on this machine:
what a training program does that OpenTelemetry instruments, in nothing but Python.

    examples/collector/epochs.py FILE [READS]      OTLP_HTTP=127.0.0.1:4318

No word of Stallspan is in it. The file should have some hundred MiB; it is put out of memory before each epoch.
"""

import json
import os
import random
import socket
import sys
import time
import urllib.request


def read(path, times):
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    blocks = os.fstat(file).st_size // 4096
    for _ in range(times):
        os.pread(file, 4096, random.randrange(blocks) * 4096)
    os.close(file)


def send(name, start, end):
    def attributes(**values):
        return [{"key": k.replace("_", "."), "value": v} for k, v in values.items()]

    span = {
        "traceId": os.urandom(16).hex(), "spanId": os.urandom(8).hex(), "name": name, "kind": 1,
        "startTimeUnixNano": str(start), "endTimeUnixNano": str(end),
    }
    resource = attributes(
        service_name={"stringValue": "epochs.py"},
        host_name={"stringValue": socket.gethostname()},
        process_pid={"intValue": str(os.getpid())},
    )
    body = {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [{"spans": [span]}]}]}
    collector = os.environ.get("OTLP_HTTP", "127.0.0.1:4318")
    request = urllib.request.Request(
        f"http://{collector}/v1/traces", json.dumps(body).encode(), {"Content-Type": "application/json"})
    urllib.request.urlopen(request).read()


def main():
    path, times = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
    for epoch in range(3):
        start = time.time_ns()
        read(path, times)
        send(f"epoch {epoch}", start, time.time_ns())
        time.sleep(1)  # as if it computed


if __name__ == "__main__":
    main()
