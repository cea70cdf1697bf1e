#!/usr/bin/python3
"""Measures by how much work is slower after a pause of 6 ms than right after the same work, by its CPU time.

docs/internals/schedule.md has the results. Other work on the machine makes all kinds slower. Needs numpy and PIL.
"""

import gc
import hashlib
import io
import json
import statistics
import time
import zlib

import numpy
from PIL import Image

PAUSE, ROUNDS = 0.006, 150
random = numpy.random.default_rng(1)
photo = io.BytesIO()
Image.fromarray(random.integers(0, 255, (16, 16, 3), dtype=numpy.uint8)).resize((224, 224)).save(photo, "JPEG")
numbers = random.integers(0, 1 << 30, 3000).tolist()
table = dict.fromkeys(random.integers(0, 1 << 30, 20000).tolist() + numbers, 1)
text, small, big = json.dumps(numbers), bytes(64 << 10), numpy.ones(1 << 20, dtype=numpy.uint8)
packed, square, target = zlib.compress(text.encode()), random.random((160, 160)), numpy.empty_like(big)

KINDS = {
    "photo": lambda: Image.open(photo).convert("RGB").resize((96, 96), Image.BILINEAR),
    "parse": lambda: json.loads(text),
    "loop": lambda: sum(n & 7 for n in numbers),
    "look up": lambda: [table[n] for n in numbers],
    "sort": lambda: sorted(numbers),
    "unpack": lambda: [zlib.decompress(packed) for _ in range(4)],
    "hash": lambda: [hashlib.sha256(small).digest() for _ in range(8)],
    "spectrum": lambda: numpy.fft.fft2(square),
    "normalize": lambda: (big[: 128 << 10].astype(numpy.float32) - 0.45) / 0.225,
    "copy": lambda: [numpy.copyto(target, big) for _ in range(4)],
}


def slower(work):
    shares, lengths = [], []
    for _ in range(ROUNDS):
        time.sleep(PAUSE)
        start = time.thread_time_ns()
        work()
        middle = time.thread_time_ns()
        work()
        end = time.thread_time_ns()
        shares.append((middle - start) / (end - middle) - 1)
        lengths.append((end - middle) / 1e6)
    return 100 * statistics.median(shares), statistics.median(lengths)


gc.disable()
found = []
for name, work in KINDS.items():
    share, length = slower(work)
    found.append(share)
    print(f"{name:10} {length:5.2f} ms, after a pause {share:3.0f} % more")
print(f"median {statistics.median(found):.0f} %, quartiles", *(f"{q:.0f} %" for q in statistics.quantiles(found)[::2]))
