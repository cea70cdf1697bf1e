"""Trains on tar shards as WebDataset does: each worker of a DataLoader reads its part of the shards, whose order is
new in each epoch, through a buffer that shuffles samples. The workers are new in each epoch, or stay."""

import argparse
import glob
import io
import os
import random
import tarfile

import label
import numpy
import torch
import truth


class Samples(torch.utils.data.IterableDataset):
    def __init__(self, folder, seed, buffer):
        self.shards = sorted(glob.glob(os.path.join(folder, "*.tar")))
        self.seed, self.buffer, self.epoch = seed, buffer, 0

    def read(self, path):
        with tarfile.open(fileobj=truth.File(path), mode="r|", bufsize=256 << 10) as shard:
            for member in shard:
                data = shard.extractfile(member).read()
                if member.name.endswith(".npy"):
                    yield numpy.load(io.BytesIO(data))

    def __iter__(self):
        self.epoch += 1  # a worker that stays counts on its own
        chance = random.Random(self.seed + self.epoch)
        shards = list(self.shards)
        chance.shuffle(shards)
        worker = torch.utils.data.get_worker_info()
        mine = shards[worker.id::worker.num_workers] if worker else shards
        held = []
        for path in mine:
            for data in self.read(path):
                held.append(data)
                if len(held) > self.buffer:
                    yield decoded(held.pop(chance.randrange(len(held))))
        for data in held:
            yield decoded(data)


def decoded(data):
    pixels = torch.from_numpy(data.copy()).float().div(255)
    return (pixels - pixels.mean()) / (pixels.std() + 0.01)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="a folder of .tar files")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--cold", action="store_true", help="each epoch reads from the disk, as of a larger data set")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--buffer", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--step", type=float, default=0.05)
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    gpu = label.Gpu(args.gpu)
    data = Samples(args.data, args.seed, args.buffer)
    loader = torch.utils.data.DataLoader(data, batch_size=args.batch, num_workers=args.workers, drop_last=True,
                                         worker_init_fn=truth.name_worker, persistent_workers=args.persistent)
    with label.life(negative=True):
        label.pause(1)
        gpu.grow(400 << 20)  # the model and its optimizer
        for number in range(args.epochs):
            if number and args.cold:
                label.cold(*data.shards)
            if not args.persistent:
                data.epoch = number
            with label.epoch(number):
                for _ in truth.batches(loader, args.workers):
                    gpu.run(args.step)
            label.pause(0.3)
        label.pause(1)


if __name__ == "__main__":
    main()
