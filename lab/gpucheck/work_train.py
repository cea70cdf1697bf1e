"""A small PyTorch training from files: an epoch that reads them cold from the disk, and the same epoch from memory.

It measures loader and GPU first, and sets the work of a step so that the disk is what the first epoch waits for."""

import glob
import os
import random
import time

import announce
import files
import torch

WORKERS, WIDTH = 2, 4096  # processes; of the network
BATCH_BYTES = 4 << 20


class Batches(torch.utils.data.Dataset):
    """Batch n: samples of so many bytes at random places of a shard, the same ones each time."""

    def __init__(self, paths, record):
        self.paths, self.files, self.record = paths, None, record

    def __getitem__(self, number):
        if self.files is None:  # in the worker
            self.files = [os.open(path, os.O_RDONLY) for path in self.paths]
            for file in self.files:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead: samples come one at a time
        shard, first = number
        record, count = self.record, BATCH_BYTES // self.record
        batch = bytearray(BATCH_BYTES)
        view = memoryview(batch)
        places = list(range(first, first + count))
        random.Random(first).shuffle(places)
        for i, place in enumerate(places):
            os.preadv(self.files[shard], [view[i * record : (i + 1) * record]], place * record)
        return torch.frombuffer(batch, dtype=torch.uint8).view(count, record)

    def __len__(self):
        return sum(os.path.getsize(path) // BATCH_BYTES for path in self.paths)


class Order(torch.utils.data.Sampler):
    """What the next epoch reads."""

    def __init__(self):
        self.batches = []

    def __iter__(self):
        return iter(list(self.batches))

    def __len__(self):
        return len(self.batches)


class Network:
    def __init__(self, record):
        torch.manual_seed(1)
        self.first = torch.nn.Linear(record, WIDTH, device="cuda", dtype=torch.bfloat16)
        self.last = torch.nn.Linear(WIDTH, 16, device="cuda", dtype=torch.bfloat16)
        self.optimiser = torch.optim.SGD([*self.first.parameters(), *self.last.parameters()], lr=1e-5)
        self.body = torch.randn(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16) / WIDTH**0.5
        self.state = torch.randn(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16)

    def step(self, batch, depth):
        """One step. depth products stand for a deeper network: they set how long the GPU takes."""
        x = batch.to("cuda").to(torch.bfloat16) / 255
        for _ in range(depth):
            self.state = self.state @ self.body
            self.state.clamp_(-1, 1)
        loss = self.last(torch.relu(self.first(x))).float().pow(2).mean() + 0 * self.state[0, 0].float()
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        return loss.item()  # waits for the GPU


def shards(folder):
    return sorted(glob.glob(os.path.join(folder, "shard-*")))


def batches_of(paths, numbers, record):
    """Of each batch the shard and its first sample."""
    each = BATCH_BYTES // record
    return [(n, each * i) for n in numbers for i in range(os.path.getsize(paths[n]) // BATCH_BYTES)]


def loop(loader, order, batches, do):
    """Seconds that an epoch of these batches takes."""
    order.batches = batches
    began = time.perf_counter()
    for batch in loader:
        do(batch)
    return time.perf_counter() - began


def make_loader(paths, record):
    order = Order()
    return order, torch.utils.data.DataLoader(
        Batches(paths, record), batch_size=None, sampler=order, num_workers=WORKERS, prefetch_factor=2, persistent_workers=True
    )


def calibrate(folder, network, record):
    """Seconds of a batch: of the loader, cold and from memory, and of the GPU, without products and for each one."""
    path = os.path.join(folder, "shard-0")
    files.write(path, 512 << 20, 8)
    order, loader = make_loader([path], record)
    all_of_it = batches_of([path], [0], record)
    warm_up, measured = all_of_it[:4], all_of_it[4 : 4 + 100]
    files.forget(path)
    loop(loader, order, warm_up, lambda batch: network.step(batch, 1))
    cold = loop(loader, order, measured, len) / len(measured)
    warm = loop(loader, order, measured, len) / len(measured)
    del loader
    batch = torch.zeros(BATCH_BYTES // record, record, dtype=torch.uint8)

    def gpu(depth):
        for _ in range(3):
            network.step(batch, depth)
        began = time.perf_counter()
        for _ in range(10):
            network.step(batch, depth)
        return (time.perf_counter() - began) / 10

    base = gpu(0)
    return {"cold_s": cold, "warm_s": warm, "step_s": base, "product_s": max((gpu(50) - base) / 50, 1e-6)}


def main():
    made = announce.parser(__doc__)
    made.add_argument("--data", required=True)
    made.add_argument("--seconds", type=float, default=7, help="of the cold epoch, about")
    made.add_argument("--share", type=float, default=0.4, help="of it that the GPU works")
    made.add_argument("--record", type=int, default=4 << 10, help="bytes of a sample")
    made.add_argument("--gpu", default="")
    args = announce.parse(made)
    network = Network(args.record)
    reported = calibrate(args.data, network, args.record)
    # The GPU is to take longer than the loader does from memory, and less than from the disk.
    target = max(args.share * reported["cold_s"], 1.3 * reported["warm_s"], reported["step_s"])
    depth = max(0, round((target - reported["step_s"]) / reported["product_s"]))
    per_batch = max(reported["cold_s"], target)
    want = int(min(args.seconds / per_batch * BATCH_BYTES, files.room(args.data), 12 << 30))
    reported.update(target_s=target, depth=depth, size=0, wanted=want)
    end = time.monotonic() + 25
    for n in range(1, 9):
        reported["size"] += files.write(os.path.join(args.data, f"shard-{n}"), want // 8, max(0.1, end - time.monotonic()))
    paths = shards(args.data)
    epoch = batches_of(paths, range(1, len(paths)), args.record)
    random.Random(2).shuffle(epoch)
    for path in paths:
        files.forget(path)
    order, loader = make_loader(paths, args.record)
    loop(loader, order, batches_of(paths, [0], args.record)[:4], lambda batch: network.step(batch, depth))  # starts the workers
    ids = {"gpu_ids": [args.gpu]} if args.gpu else {}
    reported["batches"], reported["epochs_s"] = len(epoch), []
    for number in (1, 2):
        with announce.window(kind="epoch", epoch=number, **ids):
            reported["epochs_s"].append(loop(loader, order, epoch, lambda batch: network.step(batch, depth)))
        announce.say(args.out, reported)
    time.sleep(1.5)


if __name__ == "__main__":
    main()
