"""No epochs: trainings whose data has no end that they come to.

once: shard after shard, each of them once; a few are read twice, as after a failed checksum.
drawn: each shard is drawn from all of them, so that some come often and some never.
renewed: a new DataLoader, with new workers, for every few shards; each shard once.
growing: stage after stage draws batches from a longer and longer prefix of the data.
evaluated: shard after shard, each once; every few steps a small set is evaluated.
"""

import argparse
import glob
import os
import random
import time

import label
import numpy
import torch
import truth

BLOCK = 256 << 10  # bytes of a batch


class Blocks(torch.utils.data.Dataset):
    def __init__(self, paths):
        self.places = [(path, at) for path in paths for at in range(0, os.path.getsize(path), BLOCK)]

    def __len__(self):
        return len(self.places)

    def __getitem__(self, number):
        path, at = self.places[number]
        with open(path, "rb", buffering=0) as file, truth.span("read", BLOCK):
            file.seek(at)
            data = file.read(BLOCK)
        return torch.from_numpy(numpy.frombuffer(data, dtype=numpy.uint8).copy()).float().std()


def shard(path, args, gpu):
    """Read one shard with work for each block."""
    with open(path, "rb", buffering=0) as file:
        while True:
            with truth.span("read") as one:
                data = file.read(BLOCK)
                one.argument = len(data)
            if not data:
                return
            numpy.frombuffer(data, dtype=numpy.uint8).astype(numpy.float32).std()
            gpu.run(args.step)


def once(paths, args, gpu, _):
    again = set(random.sample(range(2, len(paths)), max(2, len(paths) // 10)))
    for number, path in enumerate(paths):
        shard(path, args, gpu)
        if number in again:
            shard(path, args, gpu)


def drawn(paths, args, gpu, end):
    while time.monotonic() < end:
        shard(random.choice(paths), args, gpu)


def renewed(paths, args, gpu, _):
    for at in range(0, len(paths), args.each):
        loader = torch.utils.data.DataLoader(Blocks(paths[at:at + args.each]), batch_size=2, num_workers=args.workers,
                                             shuffle=True, worker_init_fn=truth.name_worker)
        for _ in truth.batches(loader, args.workers):
            gpu.run(2 * args.step)


def growing(paths, args, gpu, end):
    stages = 5
    began = time.monotonic()
    for stage in range(1, stages + 1):
        places = Blocks(paths[:max(1, len(paths) * stage // stages)])
        until = began + (end - began) * stage / stages
        while time.monotonic() < until:
            for _ in range(2):
                places[random.randrange(len(places))]
            gpu.run(args.step)


def evaluated(paths, args, gpu, _):
    few, paths = paths[:3], paths[3:]
    for number, path in enumerate(paths):
        shard(path, args, gpu)
        if number % args.each == args.each - 1:
            for one in few:
                data = label.read_whole(one)
                for _ in range(0, len(data), BLOCK):
                    gpu.run(args.step / 4)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("once", "drawn", "renewed", "growing", "evaluated"))
    parser.add_argument("data")
    parser.add_argument("--each", type=int, default=5, help="shards of a loader, or between evaluations")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--step", type=float, default=0.04)
    parser.add_argument("--length", type=float, default=20, help="seconds, of drawn and growing")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.set_num_threads(1)
    gpu = label.Gpu()
    paths = sorted(glob.glob(os.path.join(args.data, "*")))
    with label.life(negative=True):
        label.pause(1)
        gpu.grow(400 << 20)  # the model and its optimizer
        globals()[args.what](paths, args, gpu, time.monotonic() + args.length)
        label.pause(1)


if __name__ == "__main__":
    main()
