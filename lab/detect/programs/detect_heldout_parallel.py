"""Trains with two ranks, each a process with a GPU of its own: each reads its half of the .npy files, which are
dealt anew in each epoch, with a worker that stays or is new, and all ranks wait for each other after each step. The
first rank logs the epochs."""

import argparse
import glob
import multiprocessing
import os

import label
import numpy
import torch
import truth
from torch.utils.data.distributed import DistributedSampler


class Arrays(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.paths = sorted(glob.glob(os.path.join(folder, "*.npy")))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, number):
        data = truth.read_file(self.paths[number])
        return torch.from_numpy(numpy.frombuffer(data, dtype=numpy.uint8).copy()[: 64 << 10]).float().std()


def rank_main(rank, args, barrier):
    truth.name(f"rank{rank}")
    torch.set_num_threads(1)
    gpu = label.Gpu(rank)
    gpu.grow(400 << 20)  # the model and its optimizer
    data = Arrays(args.data)
    sampler = DistributedSampler(data, 2, rank, seed=args.seed, drop_last=True)
    worker = f"worker{rank}"
    loader = torch.utils.data.DataLoader(data, batch_size=args.batch, sampler=sampler, num_workers=1, drop_last=True,
                                         worker_init_fn=lambda _: truth.name(worker),
                                         persistent_workers=args.persistent)
    barrier.wait()
    label.pause(1)
    for number in range(args.epochs):
        sampler.set_epoch(number)
        epoch = label.epoch(number)
        epoch.__enter__()
        batches = iter(loader)
        while True:
            start = truth.now()
            if next(batches, None) is None:
                break
            truth.record("wait", start, truth.now(), worker)
            gpu.run(args.step)
            with truth.span("other", "barrier"):
                barrier.wait()
        if rank == 0:
            epoch.close()
        label.pause(0.2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--step", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    barrier = multiprocessing.Barrier(2)
    ranks = [multiprocessing.Process(target=rank_main, args=(n, args, barrier)) for n in range(2)]
    with label.life(negative=True):
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
        if any(rank.exitcode for rank in ranks):
            raise SystemExit("a rank failed")


if __name__ == "__main__":
    main()
