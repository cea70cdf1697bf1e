"""Trains from memory, and stores a checkpoint every few steps: in the first epoch on the disk, later in memory.

With --background, a thread stores it, and the next checkpoint waits for the one before.
"""

import argparse
import os
import threading

import torch
import truth


def store(state, path):
    """Write a checkpoint that survives a crash."""
    with truth.span("write", sum(t.element_size() * t.nelement() for t in state.values())):
        with open(path + ".new", "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(path + ".new", path)


class Saver:
    """Stores checkpoints in a thread, one at a time."""

    def __init__(self):
        self.thread = None

    def store(self, state, path):
        self.wait()
        copy = {name: tensor.clone() for name, tensor in state.items()}
        self.thread = threading.Thread(target=self.run, args=(copy, path))
        self.thread.start()

    def run(self, state, path):
        truth.name("saver")
        store(state, path)

    def wait(self):
        if self.thread:
            start = truth.now()
            self.thread.join()
            truth.record("wait", start, truth.now(), "saver")
            self.thread = None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="the folder of the checkpoints")
    parser.add_argument("--memory", required=True, help="another one, on tmpfs")
    parser.add_argument("--size", type=int, default=4 << 20, help="of a checkpoint, in bytes")
    parser.add_argument("--every", type=int, default=10, help="steps")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--step", type=float, default=0.03)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--background", action="store_true")
    args = parser.parse_args()

    gpu, saver = truth.Accelerator(), Saver()
    state = {"weights": torch.zeros(args.size // 4)}
    rows = torch.rand(4096, 256)
    for epoch in range(args.epochs):
        folder = args.memory if epoch else args.data
        with truth.window(epoch, "epoch", epoch=epoch):
            for step in range(args.steps):
                rows[torch.randint(len(rows), (512,))].sqrt()
                gpu.run(args.step)
                if step % args.every == args.every - 1:
                    (saver.store if args.background else store)(state, os.path.join(folder, "checkpoint.pt"))
            saver.wait()


if __name__ == "__main__":
    main()
