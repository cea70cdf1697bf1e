"""No epochs: work on a GPU that is no training, or one whose parts are no passes over its data.

pool: answers jobs, each about other files, which a pool decodes whose processes are new for each job.
bench: reads one file again and again, with pauses, and measures how fast it is decoded.
trials: tries hyperparameters one after another: each trial fits a number of steps of its own on rows that it draws.
"""

import argparse
import glob
import multiprocessing
import os
import random
import time

import label
import numpy
import truth


def decode(path):
    data = truth.read_file(path)
    return float(numpy.sort(numpy.frombuffer(data, dtype=numpy.uint8)[:256 << 10]).astype(numpy.float32).mean())


def name_worker(names):
    truth.name(f"worker{names.get()}")


def pool(args, gpu, _):
    paths = sorted(glob.glob(os.path.join(args.data, "*")))
    random.shuffle(paths)
    at = 0
    while at < len(paths):
        job = paths[at:at + random.randint(args.each // 2, args.each * 3 // 2)]
        at += len(job)
        names = multiprocessing.SimpleQueue()
        for number in range(2):
            names.put(number)
        with multiprocessing.Pool(2, name_worker, (names,)) as workers:
            results = workers.imap(decode, job)
            for number in range(len(job)):
                start = truth.now()
                next(results)
                truth.record("wait", start, truth.now(), f"worker{number % 2}")
                gpu.run(args.step)
        label.pause(random.uniform(0.1, 0.6))  # until the next job


def bench(args, gpu, end):
    path = sorted(glob.glob(os.path.join(args.data, "*")))[0]
    while time.monotonic() < end:
        began = time.perf_counter()
        data = label.read_whole(path)
        for at in range(0, len(data), 1 << 20):
            numpy.frombuffer(data, dtype=numpy.uint8)[at:at + (1 << 20)].astype(numpy.float32).std()
            gpu.run(args.step)
        rate = len(data) / (time.perf_counter() - began)
        with open(os.path.join(os.path.dirname(args.data), "bench.log"), "a") as file:
            file.write(f"{rate:.0f} bytes/s\n")
        label.pause(random.uniform(0.5, 1.5))


def trials(args, gpu, end):
    rows = [numpy.memmap(path, dtype=numpy.uint8, mode="r") for path in sorted(glob.glob(os.path.join(args.data, "*")))]
    number = 0
    while time.monotonic() < end:
        some = random.sample(rows, max(1, len(rows) // 3))
        rate = 10 ** random.uniform(-4, -1)
        for _ in range(random.randint(20, 90)):
            one = random.choice(some)
            at = random.randrange(max(1, len(one) - (64 << 10)))
            with truth.span("read", 64 << 10):
                one[at:at + (64 << 10)].astype(numpy.float32).mean()
            gpu.run(args.step)
        with open(os.path.join(os.path.dirname(args.data), "trials.csv"), "a") as file:
            file.write(f"{number},{rate:.6f}\n")
        number += 1
        label.pause(0.3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("pool", "bench", "trials"))
    parser.add_argument("data")
    parser.add_argument("--each", type=int, default=24, help="files of a job")
    parser.add_argument("--step", type=float, default=0.03)
    parser.add_argument("--length", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    random.seed(args.seed)
    gpu = label.Gpu()
    with label.life(negative=True):
        label.pause(1)
        gpu.grow(200 << 20)
        globals()[args.what](args, gpu, time.monotonic() + args.length)
        label.pause(0.5)


if __name__ == "__main__":
    main()
