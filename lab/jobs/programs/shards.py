"""Trains on tar shards that threads read and decode ahead, into a queue."""

import argparse
import glob
import io
import os
import queue
import tarfile
import threading

import numpy
import truth
from PIL import Image


def feed(number, paths, size, out):
    truth.name(f"feeder{number}")
    for path in paths:
        with tarfile.open(fileobj=truth.File(path), mode="r|", bufsize=64 * 1024) as shard:
            for member in shard:
                image = Image.open(io.BytesIO(shard.extractfile(member).read())).convert("RGB")
                pixels = numpy.asarray(image.resize((size, size), Image.BILINEAR), dtype=numpy.float32) / 255
                put(out, (number, pixels))
    put(out, (number, None))


def put(out, item):
    with truth.span("other", "queue"):
        out.put(item)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="a folder of .tar files")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--step", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    paths = sorted(glob.glob(os.path.join(args.data, "*.tar")))
    gpu = truth.Accelerator()
    for epoch in range(args.epochs):
        with truth.window(epoch, "epoch", epoch=epoch):
            items = queue.Queue(maxsize=4 * args.batch)
            threads = [
                threading.Thread(target=feed, args=(n, paths[n :: args.threads], args.size, items), daemon=True)
                for n in range(args.threads)
            ]
            for thread in threads:
                thread.start()
            running, batch = len(threads), []
            while running:
                start = truth.now()
                number, pixels = items.get()
                truth.record("wait", start, truth.now(), f"feeder{number}")
                if pixels is None:
                    running -= 1
                    continue
                batch.append(pixels)
                if len(batch) == args.batch:
                    numpy.stack(batch)
                    gpu.run(args.step)
                    batch = []
            for thread in threads:
                thread.join()


if __name__ == "__main__":
    main()
