"""No epochs: reads the .bin shards of a folder in order, a MiB at a time, with work on a GPU after each. It goes through
them again until its time is over."""

import argparse
import glob
import os
import time

import label
import truth


def stream(folder, gpu, end):
    while time.monotonic() < end:
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--length", type=float, default=12)
    args = parser.parse_args()
    gpu = label.Gpu()
    with label.life(negative=True):
        label.pause(1)
        stream(args.folder, gpu, time.monotonic() + args.length)


if __name__ == "__main__":
    main()
