"""A training whose steps are known. It prints its epochs, and logs each step with what is in truth.py.

A step is from the request for a batch to the request for the next one. Its log has a line "step START END EPOCH".
"""

import argparse
import concurrent.futures
import os
import queue
import random
import threading
import time

import numpy
import torch
import truth
from torch.utils.data import DataLoader, Dataset


class Items(Dataset):
    """Items that take some time to make: work on a core, or a wait as for a server."""

    def __init__(self, count, cost, waits, jitter):
        self.count, self.cost, self.waits, self.jitter = count, cost, waits, jitter

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        chance = random.Random(index)
        length = self.cost * chance.lognormvariate(0, self.jitter)
        if self.waits:
            time.sleep(length)
        else:
            end = time.thread_time() + length
            values = numpy.ones(4096, dtype=numpy.float32)
            while time.thread_time() < end:
                values = numpy.sqrt(values + 1)
        return torch.ones(64)


class Accelerator(truth.Accelerator):
    def wait(self, end):  # without the log of waits, which reads files
        if self.spins:
            while truth.now() < end:
                pass
        else:
            time.sleep(max(end - truth.now(), 0) / 1e9)


def threads_of(data, batch, count):
    """Batches that threads of this process make ahead, as some loaders do."""
    places, made = queue.Queue(), queue.Queue(count * 2)
    for start in range(0, len(data) - batch + 1, batch):
        places.put(start)
    total = places.qsize()

    def work():
        while True:
            try:
                start = places.get_nowait()
            except queue.Empty:
                return
            with open(torch.__file__, "rb") as file:  # as of a data set
                file.read()
            made.put(torch.stack([data[i] for i in range(start, start + batch)]))

    for _ in range(count):
        threading.Thread(target=work, daemon=True).start()
    for _ in range(total):
        yield made.get()


class Model:
    def __init__(self, args):
        self.args, self.chance = args, random.Random(args.seed)
        self.gpu = Accelerator(spins=args.spins) if os.environ.get("JOBS_GPUS") else None
        self.behind = concurrent.futures.ThreadPoolExecutor(1) if args.backward else None
        self.ends = []
        if self.gpu is None:
            self.net = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-6)
            self.many = 1
            start = time.monotonic()
            for _ in range(20):
                self.learn(torch.ones(64, 64))
            self.many = max(1, int(args.step / ((time.monotonic() - start) / 20)))

    def learn(self, batch):
        for _ in range(self.many):
            loss = self.net(batch).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def kernels(self, seconds):
        end = self.gpu.launch(seconds)
        if not self.args.queued:
            self.gpu.wait(end)
            return
        self.ends.append(end)
        if len(self.ends) > self.args.queued:  # so many launches fit into the queue
            self.gpu.wait(self.ends.pop(0))

    def part(self, seconds):
        """A forward and a backward pass."""
        seconds *= self.chance.lognormvariate(0, self.args.jitter)
        if self.gpu is None:
            self.learn(torch.ones(64, 64))
        elif self.behind:
            self.kernels(seconds / 3)
            self.behind.submit(self.kernels, seconds * 2 / 3).result()
        else:
            self.kernels(seconds)

    def step(self, number):
        args = self.args
        for _ in range(args.parts):
            self.part(args.step / args.parts)
        if args.accumulate and number % args.accumulate == args.accumulate - 1:
            if self.gpu is None:
                self.optimizer.step()
            else:
                self.kernels(args.step * 0.15)
        if args.log and number % args.log == args.log - 1:
            print(f"loss {self.chance.random():.3f}", flush=True)

    def check(self):
        if self.gpu is None:
            with torch.no_grad():
                for _ in range(self.many):
                    self.net(torch.ones(64, 64))
        else:
            self.gpu.run(self.args.step / 3)

    def drain(self):
        while self.ends:
            self.gpu.wait(self.ends.pop(0))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--step", type=float, default=0.3, help="of the accelerator or the CPU, seconds")
    parser.add_argument("--jitter", type=float, default=0.02)
    parser.add_argument("--steps", type=int, default=60, help="in an epoch")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--cost", type=float, default=0.01, help="of a batch, seconds of one worker")
    parser.add_argument("--waits", action="store_true", help="workers wait, in place of work")
    parser.add_argument("--item-jitter", type=float, default=0.2)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--queued", type=int, default=0, help="launches that the accelerator's queue takes")
    parser.add_argument("--spins", action="store_true")
    parser.add_argument("--backward", action="store_true", help="backward passes in a thread, as on a GPU")
    parser.add_argument("--parts", type=int, default=1, help="passes in a step, as of two networks")
    parser.add_argument("--accumulate", type=int, default=0)
    parser.add_argument("--log", type=int, default=0)
    parser.add_argument("--check", type=int, default=0, help="batches to validate with")
    parser.add_argument("--check-every", type=int, default=0, help="steps; 0: at the end of an epoch")
    parser.add_argument("--pool", type=int, default=1, help="threads of torch")
    parser.add_argument("--save", action="store_true", help="store something after each epoch")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    torch.set_num_threads(args.pool)
    model = Model(args)

    def loader(steps):
        data = Items(steps * args.batch, args.cost / args.batch, args.waits, args.item_jitter)
        if args.threads:
            return lambda: threads_of(data, args.batch, args.threads)
        made = DataLoader(data, batch_size=args.batch, shuffle=True, num_workers=args.workers,
                          persistent_workers=args.persistent and args.workers > 0)
        return lambda: made

    train, check = loader(args.steps), loader(args.check) if args.check else None

    def validate():
        for _ in check():
            model.check()

    for epoch in range(args.epochs):
        print(f"Epoch {epoch + 1}/{args.epochs}", flush=True)
        begin = start = truth.now()
        for number, _ in enumerate(train()):
            model.step(number)
            truth.record("step", start, truth.now(), epoch + 1)
            if check and args.check_every and number % args.check_every == args.check_every - 1:
                validate()
            start = truth.now()
        model.drain()
        if check and not args.check_every:
            validate()
        if args.save:
            with open(os.path.join(os.environ["JOBS_LOG"], "..", "model"), "wb") as file:
                file.write(bytes(32 << 20))
        truth.record("window", begin, truth.now(), f"{epoch + 1}:")


if __name__ == "__main__":
    main()
