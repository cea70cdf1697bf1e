"""Trains on a folder of JPEG files that the workers of a DataLoader decode with PIL. A validation with images of its
own may follow each epoch's training (the ends of both are right then), or the decoded images may stay in memory after
the first epoch. --accumulate lets the optimizer step after so many batches only."""

import argparse
import glob
import io
import os
import random

import label
import numpy
import torch
import truth
from PIL import Image


class Images(torch.utils.data.Dataset):
    def __init__(self, paths, keep=False):
        self.paths, self.kept = paths, {} if keep else None

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, number):
        if self.kept is not None and number in self.kept:
            return self.kept[number]
        data = truth.read_file(self.paths[number])
        image = Image.open(io.BytesIO(data)).convert("RGB").resize((160, 160), Image.BILINEAR)
        if random.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(numpy.asarray(image).copy()).permute(2, 0, 1).float().div(255)
        if self.kept is not None:
            self.kept[number] = pixels
        return pixels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--validate", action="store_true", help="with a fifth of the images")
    parser.add_argument("--keep", action="store_true", help="in memory, by the first process alone")
    parser.add_argument("--cold", action="store_true", help="each epoch reads from the disk, as of a larger data set")
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--step", type=float, default=0.05)
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    random.seed(args.seed)
    gpu = label.Gpu(args.gpu)
    paths = sorted(glob.glob(os.path.join(args.data, "*", "*.JPEG")))
    random.shuffle(paths)
    cut = len(paths) * 4 // 5 if args.validate else len(paths)
    workers = 0 if args.keep else args.workers
    options = dict(batch_size=args.batch, num_workers=workers, worker_init_fn=truth.name_worker)
    loader = torch.utils.data.DataLoader(Images(paths[:cut], args.keep), shuffle=True, **options)
    check = torch.utils.data.DataLoader(Images(paths[cut:]), **options)
    with label.life(negative=True):
        label.pause(1)
        gpu.grow(500 << 20)  # the model and its optimizer
        for number in range(args.epochs):
            if number and args.cold:
                label.cold(*paths)
            with label.epoch(number) as one:
                for step, _ in enumerate(truth.batches(loader, workers), 1):
                    gpu.run(args.step)
                    if step % args.accumulate == 0:
                        gpu.run(args.step / 2)  # the optimizer
                if args.validate:
                    one.ends.append(label.now())
                    for _ in truth.batches(check, workers):
                        gpu.run(args.step / 3)
            label.pause(0.3)
        label.pause(1)


if __name__ == "__main__":
    main()
