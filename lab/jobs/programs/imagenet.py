"""Trains a ResNet-18 on the CPU, built like PyTorch's ImageNet example: classes, workers, meters, progress."""

import argparse
import io
import time

import torch
import truth
from PIL import Image
from torchvision import datasets, models, transforms


class Meter:
    def __init__(self):
        self.value = self.sum = self.count = 0

    def update(self, value, n=1):
        self.value, self.sum, self.count = value, self.sum + value * n, self.count + n

    def __str__(self):
        return f"{self.value:6.3f} ({self.sum / self.count:6.3f})"


def load(path):
    return Image.open(io.BytesIO(truth.read_file(path))).convert("RGB")


def train(loader, model, criterion, optimizer, epoch, args):
    taken, waited, losses = Meter(), Meter(), Meter()
    end = time.time()
    for i, (images, target) in enumerate(truth.batches(loader, args.workers)):
        waited.update(time.time() - end)
        loss = criterion(model(images), target)
        losses.update(loss.item(), images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        taken.update(time.time() - end)
        end = time.time()
        if i % args.print_freq == 0:
            if i == 0:
                truth.begin(epoch)
            print(f"Epoch: [{epoch}][{i:4d}/{len(loader)}]\tTime {taken}\tData {waited}\tLoss {losses}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("-j", "--workers", type=int, default=2)
    parser.add_argument("-b", "--batch-size", type=int, default=16)
    parser.add_argument("-p", "--print-freq", type=int, default=5)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    model = models.resnet18(num_classes=10)
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    model(torch.zeros(2, 3, args.size, args.size))  # the first call prepares the library
    prepare = transforms.Compose(
        [
            transforms.RandomResizedCrop(args.size),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
        ]
    )
    data = datasets.ImageFolder(args.data, prepare, loader=load)
    for epoch in range(args.epochs):
        loader = torch.utils.data.DataLoader(
            data, batch_size=args.batch_size, shuffle=True, num_workers=args.workers, worker_init_fn=truth.name_worker
        )
        train(loader, model, criterion, optimizer, epoch, args)
    truth.begin("-")


if __name__ == "__main__":
    main()
