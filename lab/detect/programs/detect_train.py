"""Trains: reads a data set in each epoch, works on the GPU, and stores checkpoints. The data sets have names as
models have them: one .bin of tokens that is mapped, or shards that torch.load reads.

A checkpoint is one file with fsync and a new name, or without; in a thread; or .distcp files of several processes.
With --resume, a checkpoint is loaded first.
"""

import argparse
import glob
import os
import random
import threading

import label
import numpy
import torch
import truth


def tokens(path, rows):
    """Random pieces of one file, as many trainers of language models read it. A new map for each epoch."""
    data = numpy.memmap(path, dtype=numpy.uint16, mode="r")
    for _ in range(rows):
        at = random.randrange(len(data) - 8192)
        with truth.span("read", 16384):
            data[at:at + 8192].astype(numpy.int64)
        yield


def shards(folder):
    """One shard after another, in a new order for each epoch."""
    files = sorted(glob.glob(os.path.join(folder, "*")))
    random.shuffle(files)
    for path in files:
        torch.load(truth.File(path))
        yield


class Saver:
    """Stores checkpoints in one of several ways."""

    def __init__(self, folder, size, how, processes):
        self.folder, self.how, self.processes, self.thread = folder, how, processes, None
        self.state = {"model": torch.zeros(size // 4), "step": 0}

    def store(self, step):
        if self.how == "thread":
            self.wait()
            copy = dict(self.state, model=self.state["model"].clone())
            self.thread = threading.Thread(target=self.in_thread, args=(copy, step))
            self.thread.start()
        elif self.how == "processes":
            self.distributed(step)
        else:
            self.file(self.state, step, fsync=self.how == "fsync")

    def in_thread(self, state, step):
        truth.name("saver")
        self.file(state, step, True)

    def file(self, state, step, fsync):
        path = os.path.join(self.folder, f"step-{step}.pt")
        with label.checkpoint(path), truth.span("write", state["model"].nelement() * 4):
            if not fsync:
                torch.save(state, path)
                return
            with open(path + ".tmp", "wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())
            os.rename(path + ".tmp", path)

    def distributed(self, step):
        """Each process writes its part, and the first one the table of them."""
        folder = os.path.join(self.folder, f"step-{step}")
        os.makedirs(folder)
        with label.checkpoint(folder):
            children = []
            for rank in range(self.processes):
                pid = os.fork()
                if not pid:
                    part = self.state["model"].numpy().tobytes()[rank::self.processes]
                    with open(os.path.join(folder, f"__{rank}_0.distcp"), "wb") as file:
                        file.write(part)
                        file.flush()
                        os.fsync(file.fileno())
                    os._exit(0)
                children.append(pid)
            for pid in children:
                os.waitpid(pid, 0)
            with open(os.path.join(folder, ".metadata"), "wb") as file:
                file.write(bytes(5000))

    def wait(self):
        if self.thread:
            self.thread.join()
            self.thread = None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="a .bin file, or a folder of shards")
    parser.add_argument("--checkpoints", help="the folder")
    parser.add_argument("--how", default="fsync", choices=("fsync", "plain", "thread", "processes"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--size", type=int, default=64 << 20, help="of a checkpoint, in bytes")
    parser.add_argument("--resume", help="a checkpoint to load first")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rows", type=int, default=60, help="steps of an epoch over a .bin file")
    parser.add_argument("--step", type=float, default=0.03)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    random.seed(args.seed)
    gpu = label.Gpu()
    saver = args.checkpoints and Saver(args.checkpoints, args.size, args.how, args.processes)
    with label.life(negative=not args.checkpoints and not args.resume):
        label.pause(1)
        if args.resume:
            with label.load(args.resume):
                with label.phase("read"):
                    torch.load(truth.File(args.resume), map_location="cpu")
                with label.phase("host_to_device"):
                    gpu.copy(os.path.getsize(args.resume))
            label.pause(0.5)
        for number in range(args.epochs):
            with label.epoch(number):
                for _ in tokens(args.data, args.rows) if os.path.isfile(args.data) else shards(args.data):
                    gpu.run(args.step)
            if saver:
                saver.store(number)
        if saver:
            saver.wait()
        label.pause(1)


if __name__ == "__main__":
    main()
