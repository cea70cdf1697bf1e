"""No load: an inference server that reads its logs, tokenizers and tables again and again; or a tool that reads
only the headers of models, or the first 8 MiB of them, by read calls or by a map, again and again; or one that has
another program read all of them, for checksums."""

import argparse
import glob
import hashlib
import json
import mmap
import os
import random
import struct
import subprocess
import time

import label
import truth


def tables(folder):
    """Reads a tokenizer and a configuration, and writes and reads a log."""
    for path in glob.glob(os.path.join(folder, "*.json")):
        with truth.span("read", os.path.getsize(path)), open(path) as file:
            json.load(file)
    log = os.path.join(folder, "server.log")
    with open(log, "a") as file:
        file.write("request\n" * random.randrange(1000, 20000))
    with open(log) as file:
        file.read()


def headers(folder):
    """Reads the table of each model, and nothing else."""
    for path in glob.glob(os.path.join(folder, "**", "*.safetensors"), recursive=True):
        with open(path, "rb", buffering=0) as file:
            (length,) = struct.unpack("<Q", file.read(8))
            json.loads(file.read(length))
    for path in glob.glob(os.path.join(folder, "**", "*.gguf"), recursive=True):
        with open(path, "rb") as file:
            file.read(24)


def prefixes(folder):
    """Reads the first 8 MiB of each model."""
    for path in glob.glob(os.path.join(folder, "**", "*.safetensors"), recursive=True):
        with truth.span("read", 8 << 20), open(path, "rb", buffering=0) as file:
            for _ in range(8):
                hashlib.sha256(file.read(1 << 20)).digest()


def mapped(folder):
    """Maps the first 8 MiB of each model, or all of it, and touches these 8 MiB."""
    for path in glob.glob(os.path.join(folder, "**", "*.safetensors"), recursive=True):
        with open(path, "rb") as file, mmap.mmap(file.fileno(), random.choice([8 << 20, 0]), prot=mmap.PROT_READ) as area:
            with truth.span("read", 8 << 20), memoryview(area) as view:
                hashlib.sha256(view[:8 << 20]).digest()


def checksums(folder):
    """Has another program read each model."""
    for path in glob.glob(os.path.join(folder, "**", "*.safetensors"), recursive=True):
        with truth.span("other", "child"):
            subprocess.run(["sha256sum", path], check=True, stdout=subprocess.DEVNULL)


WAYS = {"tables": tables, "headers": headers, "prefixes": prefixes, "mapped": mapped, "checksums": checksums}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--what", default="tables", choices=WAYS)
    parser.add_argument("--busy", action="store_true", help="use the GPU only at the start, and pause never")
    parser.add_argument("--length", type=float, default=15)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    random.seed(args.seed)
    gpu = label.Gpu()
    with label.life(negative=True):
        end = time.monotonic() + args.length
        while time.monotonic() < end:
            WAYS[args.what](args.folder)
            if not args.busy:
                gpu.work(random.uniform(0.2, 1))
                label.pause(random.uniform(0.05, 0.3))


if __name__ == "__main__":
    main()
