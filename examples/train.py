#!/usr/bin/env python3
"""A training loop over real files in plain Python: try `stallspan run -- python3 examples/train.py`.

It writes a data set of 384 MiB if there is none, drops it from memory as after a restart of the machine, and trains
for two epochs on the same samples in the same order. The first epoch reads every sample from the disk; the second reads
them from the page cache. With --ahead 64 the disk works on 64 samples at a time. The data set stays for the next run:
remove its folder at the end.
"""

import argparse
import os
import random
import time
import zlib

SAMPLE = 4096  # bytes, and the alignment of samples in a shard


def open_data_set(folder, shards, samples):
    """Open the shards, write missing ones, and drop their pages from the page cache."""
    os.makedirs(folder, exist_ok=True)
    files = []
    for shard in range(shards):
        path = os.path.join(folder, f"shard-{shard}.bin")
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if os.fstat(file).st_size != SAMPLE * samples:
            print(f"writing {path}")
            os.truncate(file, 0)
            os.pwrite(file, os.urandom(SAMPLE * samples), 0)
        os.fsync(file)  # only clean pages can be dropped
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead: samples are read one at a time
        files.append(file)
    return files


def train(files, order, weight, ahead):
    """Run one epoch: read each sample, check it, and do a little arithmetic in place of a model."""
    for n, (shard, index) in enumerate(order):
        if ahead and n + ahead < len(order):
            later, place = order[n + ahead]
            os.posix_fadvise(files[later], place * SAMPLE, SAMPLE, os.POSIX_FADV_WILLNEED)
        sample = os.pread(files[shard], SAMPLE, index * SAMPLE)
        weight = (weight + zlib.crc32(sample)) % 1_000_003
    return weight


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="train-data",
                        help="folder of the data set, on a real disk (default: train-data)")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--samples", type=int, default=24576, help="in a shard, 4 KiB each (default: 24576)")
    parser.add_argument("--ahead", type=int, default=0, help="samples to request from the disk in advance (default: 0)")
    args = parser.parse_args()

    files = open_data_set(args.data, args.shards, args.samples)
    order = [(shard, index) for shard in range(args.shards) for index in range(args.samples)]
    random.Random(1).shuffle(order)
    weight = 0
    for epoch in range(1, args.epochs + 1):
        print(f"Epoch {epoch}/{args.epochs}")
        began = time.monotonic()
        weight = train(files, order, weight, args.ahead)
        print(f"weight {weight}, {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
