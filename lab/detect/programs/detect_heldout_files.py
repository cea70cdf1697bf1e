"""No load: programs that read or write the files of models and load none.

copy: stages the folder of a model to another place, with shutil or cp, while the GPU works for something else.
hash: checks the files of a model against their hashes, in a thread or in the first one.
fetch: downloads a model to a folder and nothing else. Its bytes are in memory, in files that are named as no model is.
inspect: reads the headers and tables of models: safetensors, GGUF, and the directory of a zip (.pt).
serve: a server without weights: vocabularies, merges, a tokenizer, templates, a log that is rotated.
embed: goes once through a data set whose files are .pt and .bin: a tensor each, of which it stores an embedding.
"""

import argparse
import glob
import hashlib
import json
import os
import random
import shutil
import struct
import subprocess
import threading
import time
import zipfile

import label
import truth


def beside(work, gpu):
    """Do work in a thread while the GPU works."""
    failed = []

    def other():
        truth.name("other")
        try:
            work()
        except Exception as problem:
            failed.append(problem)

    thread = threading.Thread(target=other)
    thread.start()
    while thread.is_alive():
        gpu.work(0.2)
    if failed:
        raise failed[0]


def copy(args, gpu):
    def work():
        os.makedirs(args.into, exist_ok=True)
        into = os.path.join(args.into, os.path.basename(args.path))
        if args.tool:
            with truth.span("other", "child"):
                subprocess.run(["cp", "-r", args.path, into], check=True)
        else:
            with truth.span("write", 0):
                shutil.copytree(args.path, into)

    beside(work, gpu)


def hashes(args, gpu):
    def work():
        for path in sorted(glob.glob(os.path.join(args.path, "*"))):
            total = hashlib.sha256()
            with open(path, "rb", buffering=0) as file:
                while True:
                    with truth.span("read") as one:
                        data = file.read(1 << 20)
                        one.argument = len(data)
                    if not data:
                        break
                    total.update(data)

    if args.tool:
        beside(work, gpu)
    else:
        work()


def fetch(args, gpu):
    def work():
        os.makedirs(args.into, exist_ok=True)
        sources = sorted(glob.glob(os.path.join(args.path, "part*")))
        for number, source in enumerate(sources, 1):
            into = os.path.join(args.into, f"model-{number:05}-of-{len(sources):05}.safetensors")
            with open(source, "rb") as true, open(into + ".incomplete", "wb", buffering=0) as file:
                while data := true.read(1 << 20):
                    label.pause(len(data) / args.rate)  # the network
                    with truth.span("write", len(data)):
                        file.write(data)
            os.rename(into + ".incomplete", into)

    beside(work, gpu)


def inspect(args, gpu):
    end = time.monotonic() + args.length
    while time.monotonic() < end:
        for path in glob.glob(os.path.join(args.path, "**", "*"), recursive=True):
            with open(path, "rb") if os.path.isfile(path) else open(os.devnull, "rb") as file:
                if path.endswith(".safetensors"):
                    (length,) = struct.unpack("<Q", file.read(8))
                    json.loads(file.read(length))
                elif path.endswith(".gguf"):
                    _, _, _, length = struct.unpack("<4sIQQ", file.read(24))
                    json.loads(file.read(length))
                elif path.endswith(".pt"):
                    with zipfile.ZipFile(file) as table:
                        table.read(next(one for one in table.namelist() if one.endswith("data.pkl")))
        gpu.work(random.uniform(0.2, 0.8))
        label.pause(random.uniform(0.1, 0.5))


def serve(args, gpu):
    words = {f"word{n}": n for n in range(50000)}
    for name in ("tokenizer.json", "vocab.json"):
        with open(os.path.join(args.path, name), "w") as file:
            json.dump(words, file)
    with open(os.path.join(args.path, "vocab.bpe"), "w") as file:
        file.writelines(f"a{n} b{n}\n" for n in range(80000))
    log = os.path.join(args.path, "server.log")
    end = time.monotonic() + args.length
    while time.monotonic() < end:
        name = random.choice(("tokenizer.json", "vocab.json", "vocab.bpe"))
        with truth.span("read", 0), open(os.path.join(args.path, name)) as file:
            file.read()
        for _ in range(random.randint(5, 20)):
            gpu.run(random.uniform(0.01, 0.05))
            label.pause(random.uniform(0.01, 0.1))
            with open(log, "a") as file:
                file.write("POST /generate 200\n" * 500)
        if os.path.getsize(log) > 1 << 20:
            os.rename(log, log + ".1")


def embed(args, gpu):
    import torch

    torch.set_num_threads(1)
    paths = glob.glob(os.path.join(args.path, "*"))
    random.shuffle(paths)
    with open(os.path.join(args.into, "embeddings.jsonl"), "w") as out:
        for path in paths:
            with truth.span("read", os.path.getsize(path)):
                state = torch.load(path)
            gpu.run(args.step)
            means = [float(one.nan_to_num().clamp(-1, 1).mean()) for one in state.values()]
            out.write(json.dumps({"file": os.path.basename(path), "embedding": means}) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("copy", "hash", "fetch", "inspect", "serve", "embed"))
    parser.add_argument("path")
    parser.add_argument("--into")
    parser.add_argument("--tool", action="store_true", help="copy: with cp; hash: in a thread")
    parser.add_argument("--rate", type=float, default=40e6)
    parser.add_argument("--step", type=float, default=0.05)
    parser.add_argument("--length", type=float, default=12)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    random.seed(args.seed)
    gpu = label.Gpu()
    with label.life(negative=True):
        label.pause(1)
        gpu.grow(300 << 20)  # what it works with, which was made here
        gpu.work(1)
        {"hash": hashes}.get(args.what, globals().get(args.what))(args, gpu)
        gpu.work(2)


if __name__ == "__main__":
    main()
