"""Trains from memory, and stores a checkpoint every few steps: in the first epoch on the disk, later in memory."""

import argparse
import os

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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="the folder of the checkpoints")
    parser.add_argument("--memory", required=True, help="another one, on tmpfs")
    parser.add_argument("--size", type=int, default=4 << 20, help="of a checkpoint, in bytes")
    parser.add_argument("--every", type=int, default=10, help="steps")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--step", type=float, default=0.03)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    gpu = truth.Accelerator()
    state = {"weights": torch.zeros(args.size // 4)}
    rows = torch.rand(4096, 256)
    for epoch in range(args.epochs):
        folder = args.memory if epoch else args.data
        with truth.window(epoch, "epoch", epoch=epoch):
            for step in range(args.steps):
                rows[torch.randint(len(rows), (512,))].sqrt()
                gpu.run(args.step)
                if step % args.every == args.every - 1:
                    store(state, os.path.join(folder, "checkpoint.pt"))


if __name__ == "__main__":
    main()
