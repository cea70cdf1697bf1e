"""Trains on the rows of a store, in a new order in each epoch: LMDB, SQLite or HDF5 through a DataLoader, the chunks
of a zarr array by a thread that reads ahead, or tables (.csv) that pandas reads again in each epoch. A validation may
follow the training of each epoch; the ends of both are right then."""

import argparse
import glob
import io
import os
import queue
import random
import sqlite3
import threading

import label
import numpy
import torch
import truth


class Rows(torch.utils.data.Dataset):
    """Rows of a store that each process opens on its own."""

    def __init__(self, path):
        self.path, self.owner = path, None
        self.store = self.connect()
        self.count = self.size()
        self.close()
        self.store = None

    def connect(self):
        raise NotImplementedError

    def close(self):
        self.store.close()

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        if self.owner != os.getpid():
            self.owner, self.store = os.getpid(), self.connect()
        with truth.span("read") as one:
            data = self.row(number)
            one.argument = data.nbytes
        return torch.from_numpy(data).float().div(255).sub(0.5)


class Lmdb(Rows):
    def connect(self):
        import lmdb

        return lmdb.open(self.path, readonly=True, lock=False, create=False)

    def size(self):
        return self.store.stat()["entries"]

    def row(self, number):
        with self.store.begin(buffers=True) as view:
            return numpy.frombuffer(view.get(b"%08d" % number), dtype=numpy.uint8).copy()


class Sqlite(Rows):
    def connect(self):
        return sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)

    def size(self):
        return self.store.execute("SELECT count(*) FROM samples").fetchone()[0]

    def row(self, number):
        (data,) = self.store.execute("SELECT data FROM samples WHERE id = ?", (number,)).fetchone()
        return numpy.frombuffer(data, dtype=numpy.uint8).copy()


class Hdf5(Rows):
    def connect(self):
        import h5py

        return h5py.File(self.path, "r")

    def size(self):
        return len(self.store["samples"])

    def row(self, number):
        return self.store["samples"][number]


def ahead(make):
    """Let a thread make the batches, two of them ahead."""
    ready = queue.Queue(2)

    def feed():
        truth.name("feeder")
        for one in make():
            with truth.span("other", "queue"):
                ready.put(one)
        ready.put(None)

    thread = threading.Thread(target=feed)
    thread.start()
    while True:
        start = truth.now()
        one = ready.get()
        truth.record("wait", start, truth.now(), "feeder")
        if one is None:
            break
        yield one
    thread.join()


def zarr_chunks(path, chance):
    import zarr

    data = zarr.open(path, "r")
    order = list(range(0, len(data), data.chunks[0]))
    chance.shuffle(order)
    for at in order:
        with truth.span("read", data.chunks[0] * data.shape[1]):
            rows = data[at:at + data.chunks[0]]
        yield rows.astype(numpy.float32).mean(1)


def csv_parts(path, chance):
    import pandas

    parts = sorted(glob.glob(os.path.join(path, "*.csv")))
    chance.shuffle(parts)
    for part in parts:
        for rows in pandas.read_csv(io.BufferedReader(truth.Raw(part), 1 << 20), chunksize=4000):
            yield ((rows - rows.mean()) / rows.std()).to_numpy(numpy.float32)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--store", choices=("lmdb", "sqlite", "hdf5", "zarr", "csv"))
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--validate", action="store_true", help="with the last fifth of the rows")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--step", type=float, default=0.05)
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    chance = random.Random(args.seed)
    gpu = label.Gpu(args.gpu)
    kind = {"lmdb": Lmdb, "sqlite": Sqlite, "hdf5": Hdf5}.get(args.store)
    check = None
    if kind:
        rows = kind(args.data)
        cut = len(rows) * 4 // 5 if args.validate else len(rows)
        options = dict(batch_size=args.batch, num_workers=args.workers, worker_init_fn=truth.name_worker)
        loader = torch.utils.data.DataLoader(torch.utils.data.Subset(rows, range(cut)), shuffle=True, **options)
        if args.validate:
            check = torch.utils.data.DataLoader(torch.utils.data.Subset(rows, range(cut, len(rows))), **options)
    with label.life(negative=True):
        label.pause(1)
        gpu.grow(300 << 20)  # the model and its optimizer
        for number in range(args.epochs):
            with label.epoch(number) as one:
                if kind:
                    batches = truth.batches(loader, args.workers)
                elif args.store == "zarr":
                    batches = ahead(lambda: zarr_chunks(args.data, chance))
                else:
                    batches = csv_parts(args.data, chance)
                for _ in batches:
                    gpu.run(args.step)
                if check:
                    one.ends.append(label.now())
                    for _ in truth.batches(check, args.workers):
                        gpu.run(args.step / 3)
            label.pause(0.2)
        label.pause(1)


if __name__ == "__main__":
    main()
