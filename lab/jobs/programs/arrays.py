"""Trains on rows of a large array: numpy.memmap or HDF5, in one thread."""

import argparse

import h5py
import numpy
import truth


class Mapped:
    def __init__(self, path):
        self.rows = numpy.load(path, mmap_mode="r")

    def batch(self, chosen):
        return numpy.stack([self.row(i) for i in chosen])

    def row(self, i):
        with truth.span("read", self.rows[i].nbytes):
            return numpy.array(self.rows[i])


class Stored:
    def __init__(self, path):
        self.rows = h5py.File(path, "r", rdcc_nbytes=0)["rows"]  # without a cache of its own, an epoch reads all again

    def batch(self, chosen):
        return numpy.stack([self.row(i) for i in chosen])

    def row(self, i):
        with truth.span("read", self.rows.dtype.itemsize * self.rows.shape[1]):
            return self.rows[i]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="a file, .npy or .h5")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--step", type=float, default=0.02)
    parser.add_argument("--work", type=int, default=1, help="passes over a batch")
    parser.add_argument("--spins", action="store_true")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    data = Stored(args.data) if args.data.endswith(".h5") else Mapped(args.data)
    gpu = truth.Accelerator(spins=args.spins)
    for epoch in range(args.epochs):
        order = numpy.random.default_rng(1).permutation(len(data.rows))
        with truth.window(epoch, "epoch", epoch=epoch):
            for first in range(0, len(order) - args.batch + 1, args.batch):
                batch = data.batch(order[first : first + args.batch]).astype(numpy.float32)
                for _ in range(args.work):
                    mean, deviation = batch.mean(axis=1, keepdims=True), batch.std(axis=1, keepdims=True)
                    batch = numpy.tanh((batch - mean) / (deviation + 1e-6))
                gpu.run(args.step)


if __name__ == "__main__":
    main()
