"""No epochs: files that are written while a training reads them.

ring: a process downloads shards into a few places, each as a new file with an old name, or over the old bytes
(--in-place); the training reads each when it is there.
rollouts: actors, which are processes of their own, write what they saw to small files; the learner reads some of the
last ones for each step, and removes old ones.
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

BLOCK = 256 << 10


def download(args, folder, free, full):
    """Fill a place when it is free. What comes is as slow as a network."""
    truth.name("downloader")
    piece = os.urandom(BLOCK)
    while True:
        with truth.span("other", "queue"):
            place = free.get()
        if place is None:
            return
        path = os.path.join(folder, f"slot-{place}.tar")
        into = path if args.in_place else path + ".part"
        with open(into, "r+b" if args.in_place and os.path.exists(path) else "wb", buffering=0) as file:
            for _ in range(args.size // BLOCK):
                label.pause(BLOCK / args.rate)
                with truth.span("write", BLOCK):
                    file.write(piece)
        if not args.in_place:
            os.rename(into, path)
        full.put(place)


def ring(args, gpu, end):
    free, full = multiprocessing.Queue(), multiprocessing.Queue()
    source = multiprocessing.Process(target=download, args=(args, args.folder, free, full))
    source.start()
    for place in range(args.places):
        free.put(place)
    while time.monotonic() < end:
        start = truth.now()
        place = full.get()
        truth.record("wait", start, truth.now(), "downloader")
        with open(os.path.join(args.folder, f"slot-{place}.tar"), "rb", buffering=0) as file:
            while True:
                with truth.span("read") as one:
                    data = file.read(BLOCK)
                    one.argument = len(data)
                if not data:
                    break
                numpy.frombuffer(data, dtype=numpy.uint8).astype(numpy.float32).std()
                gpu.run(args.step)
        free.put(place)
    free.put(None)
    while source.is_alive():
        source.join(0.1)
        while not full.empty():
            full.get()


def act(args, number, end):
    truth.name(f"actor{number}")
    chance = numpy.random.default_rng(args.seed + number)
    count = 0
    while time.monotonic() < end:
        label.pause(0.15)  # the simulation
        data = chance.integers(0, 256, (64, 84, 84), dtype=numpy.uint8)
        path = os.path.join(args.folder, f"actor{number}-{count:06}.npz")
        with truth.span("write", data.nbytes):
            numpy.savez(path[:-4] + ".part.npz", frames=data, rewards=numpy.zeros(64))
        os.rename(path[:-4] + ".part.npz", path)
        count += 1


def rollouts(args, gpu, end):
    actors = [multiprocessing.Process(target=act, args=(args, n, end)) for n in range(2)]
    for actor in actors:
        actor.start()
    while time.monotonic() < end:
        paths = [path for path in glob.glob(os.path.join(args.folder, "*.npz")) if ".part" not in path]
        paths.sort(key=os.path.getmtime)
        if len(paths) < 4:
            label.pause(0.05)
            continue
        for path in paths[:-24]:
            os.remove(path)
        for path in random.sample(paths[-24:], 4):
            with truth.span("read", os.path.getsize(path)), numpy.load(path) as data:
                data["frames"].mean()
        gpu.run(args.step)
    for actor in actors:
        actor.join()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("ring", "rollouts"))
    parser.add_argument("folder")
    parser.add_argument("--in-place", action="store_true")
    parser.add_argument("--places", type=int, default=5)
    parser.add_argument("--size", type=int, default=8 << 20, help="of a shard")
    parser.add_argument("--rate", type=float, default=30e6, help="of the download, in bytes per second")
    parser.add_argument("--step", type=float, default=0.02)
    parser.add_argument("--length", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    random.seed(args.seed)
    gpu = label.Gpu()
    os.makedirs(args.folder, exist_ok=True)
    with label.life(negative=True):
        label.pause(1)
        gpu.grow(200 << 20)  # the model and its optimizer
        globals()[args.what](args, gpu, time.monotonic() + args.length)
        label.pause(0.5)


if __name__ == "__main__":
    main()
