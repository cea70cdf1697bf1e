"""Fine-tunes: loads a pretrained model in parts with torch.load, trains on feature files (.pt, one a sample, read
by the workers of a DataLoader), and stores folders checkpoint-N, of which it keeps two. In the end it loads the
last one again.

With --only-data there is no model and no checkpoint: nothing but the features.
"""

import argparse
import glob
import json
import os
import shutil

import label
import torch
import truth


class Features(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.files = sorted(glob.glob(os.path.join(folder, "*.pt")))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, number):
        with truth.span("read", os.path.getsize(self.files[number])):
            return torch.load(self.files[number])["layers.0.weight"][:16]


def pretrained(folder, gpu):
    files = sorted(glob.glob(os.path.join(folder, "pytorch_model*.bin")))
    with label.load(folder):
        with open(glob.glob(os.path.join(folder, "*.index.json"))[0]) as index:
            json.load(index)
        for path in files:
            size = os.path.getsize(path)
            with label.phase("read"), truth.span("read", size):
                state = torch.load(path, map_location="cpu")
            with label.phase("host_to_device"):
                gpu.copy(size)
            del state


def store(folder, step, size):
    """model, optimizer and small files, as a trainer stores them. All of them are there under their names before the
    program waits until they are on the disk: both are the end."""
    into = os.path.join(folder, f"checkpoint-{step}")
    with label.checkpoint(into) as one:
        os.makedirs(into)
        with truth.span("write", size // 3):
            with open(os.path.join(into, "model.safetensors"), "wb") as file:
                file.write(bytes(size // 3))
        with truth.span("write", size * 2 // 3):
            torch.save({"state": torch.zeros(size * 2 // 3 // 4)}, os.path.join(into, "optimizer.pt"))
        for name in ("scheduler.pt", "rng_state.pth"):
            torch.save({"step": step}, os.path.join(into, name))
        with open(os.path.join(into, "trainer_state.json"), "w") as file:
            json.dump({"global_step": step}, file)
        one.ends.append(label.now())
        for path in sorted(glob.glob(os.path.join(folder, "checkpoint-*")), key=os.path.getmtime)[:-2]:
            shutil.rmtree(path)
        os.sync()
    return into


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("features")
    parser.add_argument("--model")
    parser.add_argument("--output")
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--step", type=float, default=0.05)
    parser.add_argument("--only-data", action="store_true")
    args = parser.parse_args()
    gpu = label.Gpu()
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Features(args.features), batch_size=4, shuffle=True, num_workers=args.workers,
                                         worker_init_fn=truth.name_worker)
    with label.life(negative=args.only_data):
        label.pause(1)
        if not args.only_data:
            pretrained(args.model, gpu)
            label.pause(1)
        for number in range(args.epochs):
            with label.epoch(number):
                for _ in truth.batches(loader, args.workers):
                    gpu.run(args.step)
            if not args.only_data:
                last = store(args.output, number * len(loader), args.size)
        if not args.only_data:
            label.pause(1)
            label.cold(os.path.join(last, "model.safetensors"))
            with label.load(last):
                gpu.copy(len(label.read_whole(os.path.join(last, "model.safetensors"))))
            label.pause(1)


if __name__ == "__main__":
    main()
