"""No load: a search over an index (one large .bin that is mapped, with random pages), or a preparation
that reads .npy parts and writes features, each with some work on a GPU."""

import argparse
import glob
import mmap
import os
import random
import time

import label
import truth


def search(path, gpu, end):
    with open(path, "rb") as file:
        area = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    while time.monotonic() < end:
        for _ in range(8):
            at = random.randrange(len(area) // 4096) * 4096
            with truth.span("read", 4096):
                area[at]
        gpu.run(0.02)


def prepare(folder, gpu, end):
    number = 0
    while time.monotonic() < end:
        for path in sorted(glob.glob(os.path.join(folder, "*.npy"))):
            data = label.read_whole(path)
            gpu.run(0.05)
            into = os.path.join(folder, f"features-{number}.dat")
            with open(into, "wb") as file, truth.span("write", len(data) // 8):
                file.write(data[::8])
            number += 1
            if time.monotonic() > end:
                return


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("search", "prepare"))
    parser.add_argument("path")
    parser.add_argument("--length", type=float, default=12)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    random.seed(args.seed)
    gpu = label.Gpu()
    with label.life(negative=True):
        label.pause(1)
        globals()[args.what](args.path, gpu, time.monotonic() + args.length)


if __name__ == "__main__":
    main()
