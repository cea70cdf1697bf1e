"""Trains on JPEG files in a SQLite database, with torch's DataLoader. A validation follows each epoch's training."""

import argparse
import io
import sqlite3

import numpy
import torch
import truth
from PIL import Image
from torch.utils.data import DataLoader, Dataset, Subset


class Images(Dataset):
    def __init__(self, path, size):
        self.path, self.size, self.database = path, size, None
        (self.count,) = self.open().execute("SELECT count(*) FROM images").fetchone()

    def open(self):
        return sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.database is None:  # each worker has its own
            self.database = self.open()
        with truth.span("read") as one:
            (data,) = self.database.execute("SELECT data FROM images WHERE id = ?", (index,)).fetchone()
            one.argument = len(data)
        image = Image.open(io.BytesIO(data)).convert("RGB").resize((self.size, self.size), Image.BILINEAR)
        return torch.from_numpy(numpy.asarray(image).copy()).permute(2, 0, 1).float().div(255)


def run(data, workers, gpu, args, seconds):
    loader = DataLoader(data, batch_size=args.batch, num_workers=workers, worker_init_fn=truth.name_worker)
    for _ in truth.batches(loader, workers):
        gpu.run(seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="a SQLite file")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=128, help="of the images, in pixels")
    parser.add_argument("--step", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    data, gpu = Images(args.data, args.size), truth.Accelerator()
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(1)).tolist()
    cut = len(order) * 3 // 4
    for epoch in range(args.epochs):
        with truth.window(epoch, "epoch", epoch=epoch):
            run(Subset(data, order[:cut]), args.workers, gpu, args, args.step)
            run(Subset(data, sorted(order[cut:])), 0, gpu, args, args.step / 3)


if __name__ == "__main__":
    main()
