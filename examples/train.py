#!/usr/bin/env python3
"""A training loop over real files, in nothing but Python: try `stallspan run -- python3 examples/train.py`.

It writes a data set, drops it from memory as if the machine had just started, and trains for two epochs on the same
samples in the same order. The first epoch reads every sample from the disk; the second finds them in the page cache.
"""

import argparse
import os
import random
import shutil
import tempfile
import time
import zlib

SAMPLE = 4096  # bytes, and the alignment of samples in a shard


def write_data_set(folder, shards, samples):
    """Write the shards, put them on the disk, and make the kernel forget them."""
    paths = []
    for shard in range(shards):
        path = os.path.join(folder, f"shard-{shard}.bin")
        with open(path, "wb") as file:
            file.write(os.urandom(SAMPLE * samples))
            file.flush()
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        paths.append(path)
    return paths


def train(files, order, weight):
    """One epoch: read each sample, check it, and do a little arithmetic that stands for the model."""
    for shard, index in order:
        sample = os.pread(files[shard], SAMPLE, index * SAMPLE)
        weight = (weight + zlib.crc32(sample) + sum(sample[:512])) % 1_000_003
    return weight


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dir", default=".", help="a folder on the disk to read from (default: this one)")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--samples", type=int, default=16384, help="in a shard, 4 KiB each")
    args = parser.parse_args()

    folder = tempfile.mkdtemp(prefix="train-", dir=args.dir)
    try:
        print(f"writing {args.shards * args.samples * SAMPLE >> 20} MiB to {folder}")
        files = [os.open(path, os.O_RDONLY) for path in write_data_set(folder, args.shards, args.samples)]
        for file in files:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead: samples come one at a time
        order = [(shard, index) for shard in range(args.shards) for index in range(args.samples)]
        random.Random(1).shuffle(order)
        weight = 0
        for epoch in range(1, args.epochs + 1):
            print(f"Epoch {epoch}/{args.epochs}")
            began = time.monotonic()
            weight = train(files, order, weight)
            print(f"weight {weight}, {time.monotonic() - began:.1f} s")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
