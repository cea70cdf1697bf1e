"""Trains on a folder of JPEG files with torch's DataLoader."""

import argparse
import collections
import io
import os

import numpy
import torch
import truth
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, folder, size):
        self.paths = [os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.endswith(".jpg")]
        self.size = size

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        data = truth.read_file(self.paths[index])
        image = Image.open(io.BytesIO(data)).convert("RGB").resize((self.size, self.size), Image.BILINEAR)
        pixels = torch.from_numpy(numpy.asarray(image).copy()).permute(2, 0, 1).float().div(255)
        return (pixels - 0.45) / 0.225, index % 10


def network(size, width):
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, width, 5, stride=2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(width, 2 * width, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(2 * width * 16, 10),
    )


class OnCPU:
    """Trains a small network on the CPU, with torch's pool of threads."""

    def __init__(self, args):
        self.net = network(args.size, args.width)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01)

    def step(self, images, labels):
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.net(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def finish(self):
        pass


class OnGPU:
    """Lets the accelerator compute for a fixed time a batch. Up to so many batches wait in its queue, as with CUDA. The
    thread waits for all of them after every so many steps, as for loss.item()."""

    def __init__(self, args):
        self.gpu = truth.Accelerator(spins=args.accelerator == "spin")
        self.seconds, self.sync, self.steps = args.step, args.sync, 0
        self.depth, self.ends = args.depth, collections.deque()
        if not self.depth:  # sleep and spin wait for each batch, async for the one before
            self.depth, self.sync = 1, int(args.accelerator != "async")

    def step(self, images, labels):
        if len(self.ends) == self.depth:
            self.gpu.wait(self.ends.popleft())
        self.ends.append(self.gpu.launch(self.seconds))
        self.steps += 1
        if self.sync and self.steps % self.sync == 0:
            self.finish()

    def finish(self):
        if self.ends:
            self.gpu.wait(self.ends.pop())
        self.ends.clear()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=128, help="of the images, in pixels")
    parser.add_argument("--width", type=int, default=16, help="of the network on the CPU")
    parser.add_argument("--accelerator", choices=["sleep", "spin", "async", "cpu"], default="sleep")
    parser.add_argument("--step", type=float, default=0.05, help="seconds that the accelerator computes a batch")
    parser.add_argument("--depth", type=int, default=0, help="batches that the accelerator's queue holds")
    parser.add_argument("--sync", type=int, default=0, help="wait for the accelerator after every so many batches")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0, help="of torch")
    args = parser.parse_args()

    if args.threads:
        torch.set_num_threads(args.threads)
    data = Images(args.data, args.size)
    where = (OnCPU if args.accelerator == "cpu" else OnGPU)(args)
    if args.accelerator == "cpu":  # the first step prepares the library
        where.step(torch.zeros(args.batch, 3, args.size, args.size), torch.zeros(args.batch, dtype=torch.long))
    for epoch in range(args.epochs):
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(1)).tolist()
        loader = DataLoader(
            data, batch_size=args.batch, sampler=order, num_workers=args.workers, worker_init_fn=truth.name_worker
        )
        with truth.window(epoch, "epoch", epoch=epoch):
            for images, labels in truth.batches(loader, args.workers):
                where.step(images, labels)
            where.finish()


if __name__ == "__main__":
    main()
