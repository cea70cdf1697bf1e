#!/usr/bin/env python3
"""What hack/tracepictures.sh traces: a load and two epochs that read a real disk in small pieces, one at a time."""

import os
import random
import sys
import zlib

PIECE = 4096  # bytes
MODEL, SAMPLES = 16384, 49152  # pieces: 64 and 192 MiB


def cold(path, pieces):
    """Open a file that is on the disk and not in memory."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    if os.fstat(file).st_size != pieces * PIECE:
        os.truncate(file, 0)
        for _ in range(pieces // 1024):
            os.write(file, os.urandom(1024 * PIECE))
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
    return file


def read(file, pieces, work):
    """Read a file in a random order, with some work on each piece."""
    order = list(range(pieces))
    random.Random(1).shuffle(order)
    for piece in order:
        data = os.pread(file, PIECE, piece * PIECE)
        for _ in range(work):
            zlib.crc32(data)


folder = sys.argv[1]
model, samples = cold(folder + "/model.bin", MODEL), cold(folder + "/samples.bin", SAMPLES)
print("Loading model llama", flush=True)
read(model, MODEL, 1)
print("Model ready", flush=True)
for epoch in (1, 2):
    print(f"Epoch {epoch}/2", flush=True)
    read(samples, SAMPLES, 20)
