"""Starts of an inference engine with tensor parallelism: each rank maps all safetensors files and copies its half
of each tensor; then a profile run, compiling with files in a cache, graphs on the GPU, memory for the cache of
keys, and a port. The engine starts twice: cold, and again from the page cache."""

import argparse
import glob
import json
import math
import mmap
import os
import socket
import struct
import subprocess
import sys
import tempfile

import label
import truth


def rank_main(rank, folder, work):
    truth.name(f"rank{rank}")
    gpu = label.Gpu(rank)
    print("up", flush=True)
    sys.stdin.readline()
    for path in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            table = json.loads(file.read(length))
            area = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        for name, one in table.items():
            if name == "__metadata__":
                continue
            begin, end = (8 + length + at for at in one["data_offsets"])
            middle = (begin + end) // 2
            low, high = (begin, middle) if rank == 0 else (middle, end)
            for at in range(low, high, label.CHUNK):
                with truth.span("read", label.CHUNK):
                    piece = area[at:min(at + label.CHUNK, high)]
                gpu.copy(len(piece))
        area.close()
    print("loaded", flush=True)
    sys.stdin.readline()
    gpu.work(0.5)  # the profile run
    with tempfile.TemporaryDirectory() as cache:
        for number in range(4):
            math.factorial(30000)
            with open(os.path.join(cache, f"triton_{number}.so"), "wb") as file:
                file.write(bytes(300000))
    gpu.grow(2 << 30)
    gpu.work(work / 2)
    print("ready", flush=True)
    sys.stdin.readline()
    gpu.work(work)


def start(folder, work):
    ranks = [subprocess.Popen([sys.executable, __file__, folder, "--rank", str(n), "--work", str(work)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for n in range(2)]

    def tell():
        for rank in ranks:
            rank.stdin.write("\n")
            rank.stdin.flush()

    def hear(word):
        for rank in ranks:
            assert rank.stdout.readline().strip() == word

    hear("up")
    label.pause(1)
    load = label.load(folder)
    load.__enter__()
    tell()
    hear("loaded")
    load.ends.append(label.now())
    tell()
    hear("ready")
    listener = socket.create_server(("127.0.0.1", 0))
    load.close()
    tell()
    for rank in ranks:
        rank.wait()
    listener.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--work", type=float, default=2)
    args = parser.parse_args()
    if args.rank is not None:
        rank_main(args.rank, args.folder, args.work)
        return
    with label.life():
        for _ in range(2):
            start(args.folder, args.work)
            label.pause(1)


if __name__ == "__main__":
    main()
