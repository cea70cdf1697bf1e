"""A program whose answer is known without a log: it sleeps where others read, and computes for a time that it chooses.

It checks the truth itself. Its windows are held against the times that were asked for.
"""

import argparse
import time

import torch
import truth
from torch.utils.data import DataLoader, Dataset


def until(end):
    while time.perf_counter() < end:
        pass


class Known(Dataset):
    def __init__(self, args):
        self.args = args

    def __len__(self):
        return self.args.items

    def __getitem__(self, index):
        end = time.perf_counter() + self.args.read
        with truth.span("read", 0):
            time.sleep(self.args.read / 2)
            until(end)  # a sleep alone is up to a millisecond too long
        until(end + self.args.decode)
        return torch.zeros(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--read", type=float, default=0.006)
    parser.add_argument("--decode", type=float, default=0.002)
    parser.add_argument("--step", type=float, default=0.02)
    args = parser.parse_args()
    gpu = truth.Accelerator()
    loader = DataLoader(Known(args), batch_size=args.batch, num_workers=args.workers, worker_init_fn=truth.name_worker)
    with truth.window(0, "epoch", epoch=0):
        for _ in truth.batches(loader, args.workers):
            gpu.run(args.step)


if __name__ == "__main__":
    main()
