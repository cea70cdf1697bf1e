"""Trains on images that arrive as one tar archive after the other on standard input, as from `tar -c | python`."""

import argparse
import io
import tarfile

import numpy
import truth
from PIL import Image


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, required=True, help="of the images of an epoch")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=128, help="of the images, in pixels")
    parser.add_argument("--step", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    gpu = truth.Accelerator()
    archive = tarfile.open(fileobj=truth.File(0), mode="r|", bufsize=10240, ignore_zeros=True)
    members = (m for m in archive if m.isfile())
    for epoch in range(args.epochs):
        with truth.window(epoch, "epoch", epoch=epoch):
            batch = []
            for _ in range(args.count):
                image = Image.open(io.BytesIO(archive.extractfile(next(members)).read())).convert("RGB")
                batch.append(numpy.asarray(image.resize((args.size, args.size)), dtype=numpy.float32) / 255)
                archive.members = []  # it would keep them all
                if len(batch) == args.batch:
                    numpy.stack(batch)
                    gpu.run(args.step)
                    batch = []


if __name__ == "__main__":
    main()
