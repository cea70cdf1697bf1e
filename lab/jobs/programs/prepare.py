"""Prepares JPEG files as a shell script does: xargs starts a new process for each few of them, some at a time.

With paths as arguments, this program is such a process.
"""

import argparse
import io
import os
import subprocess
import sys

import numpy
import truth
from PIL import Image


def prepare(paths):
    start = truth.now()
    truth.name(f"process{os.getpid()}")
    for path in paths:
        image = Image.open(io.BytesIO(truth.read_file(path))).convert("L").resize((96, 96), Image.BICUBIC)
        numpy.fft.fft2(numpy.asarray(image, dtype=numpy.float64))
    os.write(1, f"{os.getpid()} {start} {truth.now()}\n".encode())  # at once: others write there, too


def log_waits(processes, begin, end):
    """The last process was waited for, and before it began, the one whose end made room for it."""
    while end > begin:
        ended = [p for p in processes if p[2] <= end and p[1] < end]
        if not ended:
            return
        pid, start, finished = max(ended, key=lambda p: p[2])
        truth.record("wait", max(start, begin), finished, f"process{pid}")
        end = start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="a folder of JPEG files")
    parser.add_argument("--processes", type=int, default=2, help="at a time")
    parser.add_argument("--each", type=int, default=60, help="files of a process")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    command = (
        f"find {args.data} -name '*.jpg' -print0 | sort -z | "
        f"xargs -0 -P {args.processes} -n {args.each} {sys.executable} {__file__}"
    )
    for number in range(args.epochs):
        with truth.window(number, "custom", name="prepare"):
            start = truth.now()
            out = subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout
            log_waits([tuple(map(int, line.split())) for line in out.splitlines()], start, truth.now())


if __name__ == "__main__":
    prepare(sys.argv[1:]) if len(sys.argv) > 1 and sys.argv[1].endswith(".jpg") else main()
