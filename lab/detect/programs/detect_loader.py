"""Trains from a DataLoader of torch: new workers for each epoch as by default, workers that stay, or none.

files: small files in a new order each epoch. rows: random rows of one file by pread. map: random rows of a map. tars:
shards of samples, in a new order each epoch, dealt among the workers. With --validate, another set follows each epoch.
"""

import argparse
import glob
import os
import random

import label
import numpy
import torch
import truth

ROW = 64 << 10  # bytes of a sample


def decode(data, work):
    """Stands for decoding: some CPU time for each sample."""
    block = numpy.frombuffer(data, dtype=numpy.uint8).astype(numpy.float32)
    for _ in range(work):
        block = numpy.sqrt(block * block + 1)
    return torch.from_numpy(block[:1024].copy())


class Files(torch.utils.data.Dataset):
    def __init__(self, folder, work):
        self.paths, self.work = sorted(glob.glob(os.path.join(folder, "*"))), work

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, number):
        with open(self.paths[number], "rb") as file, truth.span("read", os.path.getsize(self.paths[number])):
            data = file.read()
        return decode(data, self.work)


class Rows(torch.utils.data.Dataset):
    """Rows of one file, which each worker opens for itself."""

    def __init__(self, path, work, mapped):
        self.path, self.work, self.mapped, self.open = path, work, mapped, None
        self.count = os.path.getsize(path) // ROW

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        if self.open is None:
            self.open = numpy.memmap(self.path, mode="r") if self.mapped else os.open(self.path, os.O_RDONLY)
        with truth.span("read", ROW):
            if self.mapped:
                data = self.open[number * ROW:(number + 1) * ROW].tobytes()
            else:
                data = os.pread(self.open, ROW, number * ROW)
        return decode(data, self.work)


class Shards(torch.utils.data.IterableDataset):
    """Shards that are read from begin to end; samples come in the order of a buffer that shuffles."""

    def __init__(self, folder, work):
        self.paths, self.work = sorted(glob.glob(os.path.join(folder, "*"))), work

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        paths = self.paths[worker.id::worker.num_workers] if worker else list(self.paths)
        random.shuffle(paths)
        buffer = []
        for path in paths:
            with open(path, "rb") as file:
                while True:
                    with truth.span("read", ROW):
                        data = file.read(ROW)
                    if not data:
                        break
                    buffer.append(data)
                    if len(buffer) > 32:
                        yield decode(buffer.pop(random.randrange(len(buffer))), self.work)
        for data in buffer:
            yield decode(data, self.work)


def dataset(path, how, work):
    if how == "files":
        return Files(path, work)
    if how == "tars":
        return Shards(path, work)
    return Rows(path, work, how == "map")


def loader(data, args):
    iterable = isinstance(data, torch.utils.data.IterableDataset)
    return torch.utils.data.DataLoader(
        data, batch_size=args.batch, shuffle=None if iterable else True, num_workers=args.workers,
        persistent_workers=args.keep and args.workers > 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--how", choices=("files", "rows", "map", "tars"), default="files")
    parser.add_argument("--validate", help="the data of the validation")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="workers stay")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--work", type=int, default=4, help="of decoding a sample")
    parser.add_argument("--step", type=float, default=0.03, help="seconds of the GPU for each batch")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    gpu = label.Gpu()
    train = loader(dataset(args.data, args.how, args.work), args)
    validation = args.validate and loader(dataset(args.validate, args.how, args.work), args)
    with label.life():
        label.pause(1)
        for number in range(args.epochs):
            with label.epoch(number) as one:
                for _ in train:
                    gpu.run(args.step)
                if validation:
                    one.ends.append(truth.now())
                    for _ in validation:
                        gpu.run(args.step / 3)
        label.pause(1)


if __name__ == "__main__":
    main()
