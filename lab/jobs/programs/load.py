"""Loads a model several times: torch.load, safetensors (mmap, a copy of each tensor) or GGUF (mmap, MADV_WILLNEED)."""

import argparse
import ctypes
import json
import mmap
import os
import struct

import numpy
import torch
import truth


def tensors(path):
    """The header of a file as safetensors has it: length, JSON, then the data."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    return {name: tuple(8 + length + offset for offset in one["data_offsets"]) for name, one in header.items()}


def from_torch(path):
    with truth.span("read", os.path.getsize(path)):
        return torch.load(path, map_location="cpu")


def from_safetensors(path):
    with open(path, "rb") as file:
        view = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
    state = {}
    for name, (start, end) in tensors(path).items():
        with truth.span("read", end - start):
            state[name] = torch.frombuffer(bytearray(view[start:end]), dtype=torch.float32)
    return state


def from_gguf(path):
    """Advise the kernel to fetch all, and take each tensor from the map in the precision of the device."""
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    mapped.madvise(mmap.MADV_WILLNEED)
    view = memoryview(mapped)
    state = {}
    for name, (start, end) in tensors(path).items():
        with truth.span("read", end - start):
            state[name] = numpy.frombuffer(view[start:end], dtype=numpy.float32).astype(numpy.float16)
    return state


FORMATS = {".pt": from_torch, ".safetensors": from_safetensors, ".gguf": from_gguf}


def keep_memory(size):
    """Take memory before the first load, and keep it for all of them.

    Memory that the kernel or a hypervisor has to find first is slow to clear. Only the first load would pay for that.
    """
    mallopt = ctypes.CDLL(None).mallopt
    mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD: blocks up to this size are from the heap
    mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: the heap never shrinks
    block = 16 << 20
    _ = [numpy.ones(block, dtype=numpy.uint8) for _ in range(size // block + 4)]  # freed at the return


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="a file: .pt, .safetensors or .gguf")
    parser.add_argument("--gpu", type=float, default=0, help="seconds of a copy at the end; 0 for no GPU")
    parser.add_argument("--loads", type=int, default=3)
    args = parser.parse_args()

    gpu = truth.Accelerator() if args.gpu else None
    torch.zeros(1).half()
    keep_memory(os.path.getsize(args.data))
    for number in range(args.loads):
        with truth.window(number, "model_load", model="model", path=args.data):
            state = FORMATS[os.path.splitext(args.data)[1]](args.data)
            if gpu:
                gpu.run(args.gpu)
        del state


if __name__ == "__main__":
    main()
