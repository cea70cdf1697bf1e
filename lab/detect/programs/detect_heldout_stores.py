"""A training on data in memory that stores checkpoints, from a GPU: each tensor is copied before it is written.

plain: torch.save over the same name. new: torch.save to a name of the step, of which the last --keep stay.
safe: safetensors to a temporary name, fsync, and a new name.
ranks: two processes write a shard each, and the first one an index and a file that names the last one.
thread: a copy in memory, which a thread writes. process: the same, which a forked process writes.
"""

import argparse
import glob
import json
import multiprocessing
import os
import struct
import threading
import time

import label
import torch
import truth

COUNT = 24  # tensors


class Paced:
    """A file for torch.save, whose tensors come from the GPU at the rate of the bus."""

    def __init__(self, path, rate):
        self.file, self.rate = open(path, "wb"), rate

    def write(self, data):
        size = len(data)
        if self.rate:
            with truth.span("other", "copy"):
                time.sleep(size / self.rate)
        with truth.span("write", size):
            self.file.write(data)
        return size

    def flush(self):
        self.file.flush()

    def close(self):
        self.file.close()


def state(size):
    return {"model": {f"layers.{n}.weight": torch.rand(size // COUNT // 4) for n in range(COUNT)}, "step": 0}


def save(path, what, rate):
    file = Paced(path, rate)
    torch.save(what, file)
    file.close()


def safetensors(path, what, rate):
    table, at = {}, 0
    for name, one in what["model"].items():
        size = one.nelement() * 4
        table[name] = {"dtype": "F32", "shape": list(one.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(table).encode()
    file = Paced(path + ".tmp", rate)
    file.write(struct.pack("<Q", len(text)) + text)
    for one in what["model"].values():
        file.write(one.numpy().tobytes())
    file.flush()
    with truth.span("write", 0):
        os.fsync(file.file.fileno())
    file.close()
    os.rename(path + ".tmp", path)


class Store:
    def __init__(self, args, gpu):
        self.args, self.rate, self.other = args, gpu.RATE, None
        self.state = state(args.size)

    def store(self, step):
        args = self.args
        if args.how == "plain":
            path = os.path.join(args.folder, "last.pt")
            with label.checkpoint(path):
                save(path, self.state, self.rate)
        elif args.how == "new":
            path = os.path.join(args.folder, f"epoch={step}-step={step * 100}.ckpt")
            with label.checkpoint(path):
                save(path, self.state, self.rate)
            for old in sorted(glob.glob(os.path.join(args.folder, "*.ckpt")), key=os.path.getmtime)[:-args.keep]:
                os.remove(old)
        elif args.how == "safe":
            path = os.path.join(args.folder, f"model-{step}.safetensors")
            with label.checkpoint(path):
                safetensors(path, self.state, self.rate)
        else:
            self.wait()
            with truth.span("other", "copy"):  # from the GPU
                time.sleep(args.size / self.rate)
            held = {"model": {name: one.clone() for name, one in self.state["model"].items()}, "step": step}
            path = os.path.join(args.folder, f"step-{step}.pt")
            kind = threading.Thread if args.how == "thread" else multiprocessing.Process
            self.other = kind(target=self.write, args=(path, held))
            self.other.start()

    def write(self, path, held):
        truth.name("saver")
        with label.checkpoint(path):
            with open(path + ".part", "wb") as file:
                with truth.span("write", self.args.size):
                    torch.save(held, file)
                file.flush()
                with truth.span("write", 0):
                    os.fsync(file.fileno())
            os.rename(path + ".part", path)

    def wait(self):
        if self.other:
            start = truth.now()
            self.other.join()
            truth.record("wait", start, truth.now(), "saver")
            self.other = None


def train(gpu, args):
    for _ in range(args.steps):
        gpu.run(args.step)
        sum(range(20000))  # the loop of Python


def one_process(args):
    gpu = label.Gpu()
    torch.set_num_threads(1)
    with label.life():
        label.pause(1)
        gpu.grow(args.size)
        store = Store(args, gpu)
        for number in range(args.saves):
            train(gpu, args)
            store.store(number)
        store.wait()
        train(gpu, args)


def rank_main(rank, args, barrier):
    truth.name(f"rank{rank}")
    torch.set_num_threads(1)
    gpu = label.Gpu(rank)
    gpu.grow(args.size // 2)
    mine = state(args.size // 2)
    for number in range(args.saves):
        train(gpu, args)
        meet(barrier)
        folder = os.path.join(args.folder, f"global_step{number}")
        if rank == 0:
            os.makedirs(folder)
        meet(barrier)
        one = label.checkpoint(folder)
        path = os.path.join(folder, f"mp_rank_{rank:02}_model_states.pt")
        one.__enter__()
        save(path, mine, gpu.RATE)
        meet(barrier)
        if rank == 0:
            with open(os.path.join(args.folder, "latest.new"), "w") as file:
                file.write(f"global_step{number}")
            os.rename(os.path.join(args.folder, "latest.new"), os.path.join(args.folder, "latest"))
            one.close()
    train(gpu, args)


def meet(barrier):
    with truth.span("other", "barrier"):
        barrier.wait()


def two_ranks(args):
    barrier = multiprocessing.Barrier(2)
    ranks = [multiprocessing.Process(target=rank_main, args=(n, args, barrier)) for n in range(2)]
    with label.life():
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
        if any(rank.exitcode for rank in ranks):
            raise SystemExit("a rank failed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--how", choices=("plain", "new", "safe", "ranks", "thread", "process"))
    parser.add_argument("--size", type=int, default=120 << 20)
    parser.add_argument("--saves", type=int, default=4)
    parser.add_argument("--keep", type=int, default=2)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--step", type=float, default=0.05)
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    multiprocessing.set_start_method("fork")
    if args.how == "ranks":
        two_ranks(args)
    else:
        one_process(args)


if __name__ == "__main__":
    main()
