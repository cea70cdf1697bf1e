"""Reads the .bin shards of a folder in order, a MiB at a time, with work on a GPU after each. It goes through them again
until its time is over. Each whole pass is an epoch; the last one is cut off, and is none."""

import argparse
import glob
import os
import time

import label
import truth


def stream(folder, gpu, end):
    number = 0
    while True:
        one_pass = label.epoch(number)
        one_pass.__enter__()
        for path in sorted(glob.glob(os.path.join(folder, "*.bin"))):
            with open(path, "rb") as file:
                while True:
                    with truth.span("read") as one:
                        block = file.read(1 << 20)
                        one.argument = len(block)
                    if not block:
                        break
                    gpu.run(0.01)
            if time.monotonic() > end:
                return
        one_pass.close()
        number += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--length", type=float, default=12)
    args = parser.parse_args()
    gpu = label.Gpu()
    with label.life():
        label.pause(1)
        stream(args.folder, gpu, time.monotonic() + args.length)


if __name__ == "__main__":
    main()
