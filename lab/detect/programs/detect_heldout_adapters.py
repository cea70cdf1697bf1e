"""A base model, and then adapters (LoRA) of it, one with each of some requests. An adapter is a model of its own: a
small file in a folder of its own, next to its configuration."""

import argparse
import glob
import json
import mmap
import os
import struct

import label
import numpy
import truth


def load(folder, gpu):
    """A map, and a copy of each tensor."""
    with open(glob.glob(os.path.join(folder, "*config.json"))[0]) as file:
        json.load(file)
    for path in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
        with open(path, "rb", buffering=0) as file:
            (length,) = struct.unpack("<Q", file.read(8))
            table = json.loads(file.read(length))
            area = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        for name, one in table.items():
            if name == "__metadata__":
                continue
            start, end = (8 + length + at for at in one["data_offsets"])
            with truth.span("read", end - start):
                tensor = numpy.frombuffer(area, numpy.uint8, end - start, start).copy()
            gpu.copy(tensor.nbytes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("base")
    parser.add_argument("adapters", nargs="+")
    parser.add_argument("--work", type=float, default=3)
    args = parser.parse_args()
    gpu = label.Gpu()
    with label.life():
        label.pause(1)
        for folder in [args.base, *args.adapters]:
            with label.load(folder):
                load(folder, gpu)
            gpu.work(args.work)
            label.pause(0.3)


if __name__ == "__main__":
    main()
