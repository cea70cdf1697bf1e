"""Clusters the rows of many small .npy files. Each file is mapped into memory."""

import argparse
import os

import numpy
import truth
from sklearn.cluster import MiniBatchKMeans


def rows(folder):
    for root, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            path = os.path.join(root, name)
            with truth.span("read", os.path.getsize(path)):
                data = numpy.array(numpy.load(path, mmap_mode="r"))
            yield data


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="a folder with folders of .npy files")
    parser.add_argument("--batch", type=int, default=32, help="files")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    model = MiniBatchKMeans(8, n_init=1, batch_size=1024)
    model.partial_fit(numpy.random.default_rng(1).random((1024, 64), dtype=numpy.float32))  # prepares the library
    for epoch in range(args.epochs):
        with truth.window(epoch, "epoch", epoch=epoch):
            batch = []
            for data in rows(args.data):
                batch.append(data)
                if len(batch) == args.batch:
                    model.partial_fit(numpy.concatenate(batch).reshape(-1, 64))
                    batch = []


if __name__ == "__main__":
    main()
