"""Loads long after a server has begun. It answers requests: short work, a log, and now and then its tokenizer.

once: it begins without a model, and loads one with a request after so many seconds.
again: it loads a model at its start, and a newer one in its place after so many seconds.
swap: two models that take each other's place, every some seconds; they come from the disk each time.
"""

import argparse
import glob
import json
import mmap
import os
import struct
import time

import label
import numpy
import truth


def serve(gpu, seconds, folder):
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        label.pause(0.06)
        gpu.run(0.03)
        with open(os.path.join(folder, "access.log"), "a") as file:
            file.write("POST /v1/completions 200\n" * 20)
        count += 1
        if count % 50 == 0:
            with open(os.path.join(folder, "tokenizer.json")) as file:
                json.load(file)


def read(path, gpu):
    gpu.copy(len(label.read_whole(path)))


def mapped(path, gpu):
    with open(path, "rb") as file:
        area = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    (length,) = struct.unpack("<Q", area[:8])
    table = json.loads(area[8:8 + length])
    for name, one in table.items():
        if name == "__metadata__":
            continue
        start, end = (8 + length + at for at in one["data_offsets"])
        with truth.span("read", end - start):
            tensor = numpy.frombuffer(area, numpy.uint8, end - start, start).copy()
        gpu.copy(tensor.nbytes)


def loaded(folder, how, gpu):
    gpu.free()
    with label.load(folder):
        for path in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
            {"read": read, "map": mapped}[how](path, gpu)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("once", "again", "swap"))
    parser.add_argument("models", nargs="+", help="folders")
    parser.add_argument("--how", choices=("read", "map"), default="read")
    parser.add_argument("--folder", help="of the tokenizer and the log")
    parser.add_argument("--serve", type=float, default=40)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--work", type=float, default=3)
    args = parser.parse_args()
    with open(os.path.join(args.folder, "tokenizer.json"), "w") as file:
        json.dump({str(n): n for n in range(20000)}, file)
    gpu = label.Gpu()
    with label.life():
        label.pause(1)
        if args.what == "swap":
            for turn in range(args.turns):
                folder = args.models[turn % len(args.models)]
                label.cold(*glob.glob(os.path.join(folder, "*.safetensors")))
                loaded(folder, args.how, gpu)
                serve(gpu, args.serve, args.folder)
        else:
            if args.what == "again":
                loaded(args.models[0], args.how, gpu)
            serve(gpu, args.serve, args.folder)
            loaded(args.models[-1], args.how, gpu)
        serve(gpu, args.work, args.folder)


if __name__ == "__main__":
    main()
