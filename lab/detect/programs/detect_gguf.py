"""Maps GGUF files: with advice to the kernel to fetch all, or without; the pages are touched. Two models in one
process.

With --later, the map is made first, and touched seconds later, as a server does that loads a model with the first
request. The load begins with the first touch. --lock also keeps all in memory (mlock).
"""

import argparse
import json
import mmap
import os
import struct

import label
import numpy
import truth


def tensors(file):
    _, _, _, length = struct.unpack("<4sIQQ", os.pread(file, 24, 0))
    return [(24 + length + at, 24 + length + at + size) for _, at, size in json.loads(os.pread(file, length, 24))]


def touch(area, table, gpu):
    """Read all pages: the first layers stay in the map for the CPU, the others are copied to the GPU."""
    view = memoryview(area)
    for number, (start, end) in enumerate(table):
        for at in range(start, end, label.CHUNK):
            with truth.span("read", min(at + label.CHUNK, end) - at):
                numpy.frombuffer(view[at:min(at + label.CHUNK, end)], dtype=numpy.uint8)[::512].sum()
        if number % 2:
            gpu.copy(end - start)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    parser.add_argument("--advise", action="store_true")
    parser.add_argument("--later", type=float, default=0, help="seconds from the map to the first touch")
    parser.add_argument("--work", type=float, default=2)
    args = parser.parse_args()
    gpu = label.Gpu()
    with label.life():
        areas = []
        label.pause(args.work)
        for path in args.models:
            load = label.load(path)
            load.__enter__()
            file = os.open(path, os.O_RDONLY)
            table = tensors(file)
            area = mmap.mmap(file, 0, prot=mmap.PROT_READ)
            os.close(file)
            areas.append(area)
            if args.later:
                label.pause(args.later)
                load = label.load(path)
                load.__enter__()
            if args.advise:
                area.madvise(mmap.MADV_WILLNEED)
            touch(area, table, gpu)
            load.close()
            gpu.work(args.work)
            label.pause(args.work / 2)


if __name__ == "__main__":
    main()
