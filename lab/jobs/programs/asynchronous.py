"""Trains on JPEG files that asyncio loads with a pool of threads, one batch ahead of the accelerator."""

import argparse
import asyncio
import io
import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy
import truth
from PIL import Image

numbers = itertools.count()


def load(path, size):
    image = Image.open(io.BytesIO(truth.read_file(path))).convert("RGB").resize((size, size), Image.BICUBIC)
    pixels = numpy.asarray(image, dtype=numpy.float32) / 255
    return truth.now(), threading.current_thread().name, pixels


def begin():
    name = f"loader{next(numbers)}"
    threading.current_thread().name = name
    truth.name(name)


async def epoch(paths, pool, gpu, args):
    loop = asyncio.get_running_loop()

    def submit(first):
        return [loop.run_in_executor(pool, load, path, args.size) for path in paths[first : first + args.batch]]

    following = submit(0)
    for first in range(0, len(paths), args.batch):
        tasks, following = following, submit(first + args.batch)
        start = truth.now()
        items = await asyncio.gather(*tasks)
        truth.record("wait", start, truth.now(), max(i[:2] for i in items)[1])
        numpy.stack([pixels for _, _, pixels in items])
        gpu.run(args.step)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="a folder of JPEG files")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=128, help="of the images, in pixels")
    parser.add_argument("--step", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    paths = [os.path.join(args.data, f) for f in sorted(os.listdir(args.data)) if f.endswith(".jpg")]
    gpu = truth.Accelerator()
    with ThreadPoolExecutor(args.threads, initializer=begin) as pool:
        for number in range(args.epochs):
            with truth.window(number, "epoch", epoch=number):
                asyncio.run(epoch(paths, pool, gpu, args))


if __name__ == "__main__":
    main()
