#!/usr/bin/env python3
"""What hack/tracepictures.sh traces: two epochs that read a real disk in small pieces, one at a time.

With a second argument, N, it trains for N epochs on a stand-in for a GPU (testdata/fakenvml) whose kernels the file
named by the third one shows. Each second epoch finds its data in memory.
"""

import os
import random
import struct
import sys
import time
import zlib

PIECE = 4096  # bytes
SAMPLES = 49152  # pieces: 192 MiB


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


class GPU:
    """A stand-in for a GPU: it is busy while compute() waits."""

    def __init__(self, path):
        self.file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self.version, self.done, self.start, self.end = 0, 0, 0, 0
        os.pwrite(self.file, struct.pack("4QQ", 0, 0, 0, 0, os.getpid()), 0)

    def compute(self, seconds):
        self.done += self.end - self.start
        self.start = time.monotonic_ns()
        self.end = self.start + int(seconds * 1e9)
        self.version += 2
        os.pwrite(self.file, struct.pack("Q", self.version - 1), 0)
        os.pwrite(self.file, struct.pack("3Q", self.done, self.start, self.end), 8)
        os.pwrite(self.file, struct.pack("Q", self.version), 0)
        time.sleep(seconds)


def train(folder, epochs, gpu):
    """Train on batches of 128 pieces that take 15 ms on the GPU."""
    samples = cold(folder + "/samples.bin", SAMPLES)
    for epoch in range(1, epochs + 1):
        print(f"Epoch {epoch}/{epochs}", flush=True)
        if epoch % 2:
            os.posix_fadvise(samples, 0, 0, os.POSIX_FADV_DONTNEED)
        for batch in range(SAMPLES // 128):
            for piece in range(batch * 128, batch * 128 + 128):
                zlib.crc32(os.pread(samples, PIECE, piece * PIECE))
            gpu.compute(0.015)


def read(file):
    """Read a file in a random order, with some work on each piece."""
    order = list(range(SAMPLES))
    random.Random(1).shuffle(order)
    for piece in order:
        data = os.pread(file, PIECE, piece * PIECE)
        for _ in range(20):
            zlib.crc32(data)


folder = sys.argv[1]
if len(sys.argv) > 2:
    train(folder, int(sys.argv[2]), GPU(sys.argv[3]))
    sys.exit()
samples = cold(folder + "/samples.bin", SAMPLES)
for epoch in (1, 2):
    print(f"Epoch {epoch}/2", flush=True)
    read(samples)
