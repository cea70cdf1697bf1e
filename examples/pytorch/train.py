#!/usr/bin/env python3
"""A small PyTorch training that announces its epochs, steps and checkpoints.

    pip install ./python
    stallspan run -- python3 examples/pytorch/train.py

It makes a data set of JPEG files in train-data, and learns to tell light images from dark ones. With --workers 0 the
main process reads and decodes them; with --workers 4 four others do, ahead of it. Without Stallspan it trains as well.
"""

import argparse
import os

import stallspan
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.functional import to_tensor


def make_images(folder, count, size):
    """Write missing images: noise around a light grey or a dark one."""
    os.makedirs(folder, exist_ok=True)
    random = torch.Generator().manual_seed(1)
    for n in range(count):
        path = os.path.join(folder, f"{n:05d}.jpg")
        noise = torch.randint(0, 128, (size, size, 3), dtype=torch.uint8, generator=random)
        if not os.path.exists(path):
            Image.fromarray((noise + 100 * (n % 2)).numpy()).save(path)


class Images(Dataset):
    """The images of a folder, with 1 for a light one."""

    def __init__(self, folder):
        self.paths = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".jpg"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, n):
        with Image.open(self.paths[n]) as image:
            return to_tensor(image.convert("RGB")), n % 2


def make_model():
    """Return a network for images of any size."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2), torch.nn.ReLU(),
        torch.nn.Conv2d(8, 16, 3, stride=2), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(16, 2))


def train(model, batches, optimizer, device):
    """Run one epoch, and return the mean loss."""
    total = 0.0
    for images, labels in batches:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(batches)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="train-data/images", help="folder of the images (default: train-data/images)")
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--size", type=int, default=128, help="of an image, in pixels (default: 128)")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()

    make_images(args.data, args.images, args.size)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    model = make_model().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(Images(args.data), batch_size=32, shuffle=True, num_workers=args.workers)
    for n in range(1, args.epochs + 1):
        with stallspan.epoch(n, path=args.data) as epoch:
            batches = stallspan.watch(loader)
            loss = train(model, batches, optimizer, device)
        print(f"epoch {n}: loss {loss:.3f}, {batches.fetch_seconds:.1f} s in next(). {epoch.finding}")
        path = os.path.join(args.data, "model.pt")
        with stallspan.checkpoint(path=path):
            torch.save(model.state_dict(), path)


if __name__ == "__main__":
    main()
