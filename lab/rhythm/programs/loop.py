"""Trains as users do. It announces nothing and prints nothing. Its log says where its epochs began and ended."""

import argparse
import os
import sqlite3
import tarfile
import time

import numpy
import torch
import truth
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


def decode(data, work):
    values = numpy.frombuffer(data, dtype=numpy.uint8)[: 96 * 96].astype(numpy.float32)
    for _ in range(work):
        values = numpy.sqrt(values * values + 1)
    return torch.from_numpy(values)


class Files(Dataset):
    """A file for each item."""

    def __init__(self, folder, args):
        self.paths = [os.path.join(folder, f) for f in sorted(os.listdir(folder))]
        self.work = args.work

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with open(self.paths[index], "rb") as file:
            return decode(file.read(), self.work)


class Memory(Dataset):
    """All items are read at the start."""

    def __init__(self, folder, args):
        files = Files(folder, args)
        self.items = [open(path, "rb").read() for path in files.paths]
        self.work = args.work

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return decode(self.items[index], self.work)


class Database(Dataset):
    """Rows of a SQLite file. Each worker opens it."""

    def __init__(self, path, args):
        self.path, self.work, self.file = path, args.work, None
        with sqlite3.connect(path) as file:
            (self.count,) = file.execute("SELECT count(*) FROM items").fetchone()
        file.close()

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.file is None:
            self.file = sqlite3.connect(self.path)
        (data,) = self.file.execute("SELECT data FROM items WHERE id = ?", (index,)).fetchone()
        return decode(data, self.work)


class Shards(IterableDataset):
    """Tar files, in an order that changes. The workers share them."""

    def __init__(self, folder, args):
        self.paths = [os.path.join(folder, f) for f in sorted(os.listdir(folder))]
        self.work, self.shuffle, self.passes = args.work, args.shuffle, 0

    def __iter__(self):
        worker = get_worker_info()
        paths = list(self.paths)
        self.passes += 1
        if self.shuffle:
            numpy.random.default_rng(self.passes).shuffle(paths)
        for path in paths[worker.id :: worker.num_workers] if worker else paths:
            with tarfile.open(path) as shard:
                for member in shard:
                    yield decode(shard.extractfile(member).read(), self.work)


class Stream(IterableDataset):
    """One file from its begin to its end. It is opened once, or for each epoch."""

    def __init__(self, path, args):
        self.path, self.work, self.file, self.keep = path, args.work, None, args.rewind

    def __iter__(self):
        if self.file is None or not self.keep:
            self.file = open(self.path, "rb", buffering=0)
        self.file.seek(0)
        while data := self.file.read(64 * 1024):
            yield decode(data, self.work)
        if not self.keep:
            self.file.close()


class Mapped(Dataset):
    """Random pieces of a large file that is mapped, as of tokens."""

    def __init__(self, path, args):
        self.data, self.work, self.count = numpy.memmap(path, mode="r", dtype=numpy.uint8), args.work, args.items

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        start = int(torch.randint(len(self.data) - 65536, (1,)))
        return decode(bytes(self.data[start : start + 65536]), self.work)


KINDS = {"files": Files, "memory": Memory, "database": Database, "shards": Shards, "stream": Stream, "mapped": Mapped}


class Model:
    def __init__(self, args):
        self.gpu = truth.Accelerator() if os.environ.get("JOBS_GPUS") else None
        self.step_s = args.step
        if self.gpu is None:
            self.net = torch.nn.Sequential(torch.nn.Linear(96 * 96, args.width), torch.nn.ReLU(), torch.nn.Linear(args.width, 10))
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-6)

    def step(self, batch, learn=True):
        if self.gpu is not None:
            self.gpu.run(self.step_s if learn else self.step_s / 3)
            return
        loss = self.net(batch).square().mean()
        if learn:
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def save(self, path, size):
        with open(path + ".tmp", "wb") as file:
            file.write(os.urandom(size))
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".tmp", path)


def loader(data, args, batch, shuffle):
    iterable = isinstance(data, IterableDataset)
    return DataLoader(
        data, batch_size=batch, shuffle=None if iterable else shuffle, num_workers=args.workers,
        persistent_workers=args.persistent and args.workers > 0,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("data")
    parser.add_argument("--validation", help="validate with these data after each epoch")
    parser.add_argument("--sanity", type=int, default=0, help="validate so many batches before the first epoch")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--shuffle", action="store_true")
    parser.add_argument("--rewind", action="store_true")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--work", type=int, default=20, help="to decode an item")
    parser.add_argument("--step", type=float, default=0.05)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--save", help="write a checkpoint after each epoch")
    parser.add_argument("--save-size", type=int, default=8 << 20)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()

    torch.set_num_threads(1)
    model = Model(args)
    train = loader(KINDS[args.kind](args.data, args), args, args.batch, args.shuffle)
    check = loader(KINDS[args.kind](args.validation, args), args, args.batch, False) if args.validation else None
    if args.sanity:
        for number, batch in enumerate(check):
            model.step(batch, learn=False)
            if number + 1 == args.sanity:
                break
        time.sleep(0.2)
    for epoch in range(args.epochs):
        start = truth.now()
        for batch in train:
            model.step(batch)
        if check is not None:
            for batch in check:
                model.step(batch, learn=False)
        if args.save:
            model.save(args.save, args.save_size)
        truth.record("window", start, truth.now(), f"{epoch}:")


if __name__ == "__main__":
    main()
