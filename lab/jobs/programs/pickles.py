"""Trains on compressed pickles that a thread loads ahead. The accelerator has a deep queue of kernels."""

import argparse
import collections
import glob
import gzip
import os
import pickle
import queue
import threading

import numpy
import truth


def load(paths, out):
    truth.name("loader")
    for path in paths:
        with gzip.GzipFile(fileobj=truth.File(path)) as file:
            rows = pickle.load(file)
        with truth.span("other", "queue"):
            out.put(rows)
    out.put(None)


def ahead(paths, depth):
    """Yield what a thread loads."""
    items = queue.Queue(maxsize=depth)
    thread = threading.Thread(target=load, args=(paths, items), daemon=True)
    thread.start()
    while True:
        start = truth.now()
        rows = items.get()
        truth.record("wait", start, truth.now(), "loader")
        if rows is None:
            break
        yield rows
    thread.join()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="a folder of .pkl.gz files")
    parser.add_argument("--batch", type=int, default=64, help="rows")
    parser.add_argument("--ahead", type=int, default=2, help="files")
    parser.add_argument("--kernels", type=int, default=8, help="that may be queued")
    parser.add_argument("--step", type=float, default=0.03)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    paths = sorted(glob.glob(os.path.join(args.data, "*.pkl.gz")))
    gpu, ends = truth.Accelerator(), collections.deque()
    for epoch in range(args.epochs):
        with truth.window(epoch, "epoch", epoch=epoch):
            for rows in ahead(paths, args.ahead):
                for first in range(0, len(rows), args.batch):
                    numpy.tanh(rows[first : first + args.batch].astype(numpy.float32))
                    ends.append(gpu.launch(args.step))
                    if len(ends) > args.kernels:
                        gpu.wait(ends.popleft())
            while ends:
                gpu.wait(ends.popleft())


if __name__ == "__main__":
    main()
