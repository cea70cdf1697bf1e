"""Loads state dicts with torch.load, moves them to the GPU, and works. Each model is loaded cold, and then warm.

With --late, the program asks at its start whether there is a GPU, and takes memory of it only when the weights are in
memory, as with map_location="cpu".
"""

import argparse
import os

import label
import torch
import truth


def load(path, gpu):
    """torch.load with the file's reads logged one by one."""
    with label.phase("read"):
        state = torch.load(truth.File(path), map_location="cpu")
    gpu = gpu or label.Gpu()
    with label.phase("host_to_device"):
        for tensor in state.values():
            gpu.copy(tensor.element_size() * tensor.nelement())
    return state, gpu


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    parser.add_argument("--late", action="store_true")
    parser.add_argument("--loads", type=int, default=2)
    parser.add_argument("--work", type=float, default=2)
    args = parser.parse_args()
    torch.zeros(1).half()
    label.keep_memory(max(map(os.path.getsize, args.models)))
    label.initialise()
    gpu = None if args.late else label.Gpu()
    with label.life():
        label.pause(args.work)
        for path in args.models:
            for _ in range(args.loads):
                with label.load(path):
                    state, gpu = load(path, gpu)
                gpu.work(args.work)
                del state
                gpu.free()
                label.pause(args.work)


if __name__ == "__main__":
    main()
