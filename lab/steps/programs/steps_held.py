"""Trainings, and programs without steps, that nothing was tuned with. Their logs are as those of steps.py."""

import argparse
import collections
import math
import multiprocessing
import os
import queue
import random
import subprocess
import sys
import threading
import time

import numpy
import torch
import truth
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


def busy(seconds):
    end, values = time.thread_time() + seconds, numpy.arange(2048, dtype=numpy.float64)
    while time.thread_time() < end:
        values = numpy.cos(values)


class Stream(IterableDataset):
    """Samples without an index. Workers share them. Now and then one takes long."""

    def __init__(self, samples, cost, rare):
        self.samples, self.cost, self.rare = samples, cost, rare

    def __iter__(self):
        worker = get_worker_info()
        first, every = (worker.id, worker.num_workers) if worker else (0, 1)
        chance = random.Random(first)
        for _ in range(first, self.samples, every):
            busy(self.cost * (8 if chance.random() < self.rare else chance.uniform(0.6, 1.4)))
            yield numpy.ones(16, dtype=numpy.float32)


class Device(truth.Accelerator):
    def wait(self, end):  # without the log of waits, which reads files
        time.sleep(max(end - truth.now(), 0) / 1e9)


class Log:
    def __init__(self):
        self.start = truth.now()

    def step(self, epoch):
        truth.record("step", self.start, truth.now(), epoch)
        self.start = truth.now()

    def skip(self):
        self.start = truth.now()


def gpu():
    return Device() if os.environ.get("JOBS_GPUS") else None


def finetune(args, chance, device, epoch, state):
    """Micro-batches of different lengths, an optimizer's step after some of them, a line after some steps, evaluation."""
    if not state:
        state["train"] = DataLoader(Stream(args.steps * 2, args.cost / 2, 0.02), batch_size=2, num_workers=args.workers,
                                    prefetch_factor=4 if args.workers else 2)
        state["eval"] = DataLoader(Stream(24, args.cost / 2, 0), batch_size=4, num_workers=min(args.workers, 1))
    log = Log()
    for number, _ in enumerate(state["train"], 1):
        device.run(args.step * chance.choice([0.85, 0.95, 1, 1, 1.05, 1.15]))
        if number % args.every == 0:
            device.run(args.step * 0.1)
            sys.stdout.write(f"{{'loss': {chance.random():.4f}}}\n")
            sys.stdout.flush()
        log.step(epoch)
        if number == args.steps // 2:
            for _ in state["eval"]:
                device.run(args.step * 0.3)
            log.skip()


def adversarial(args, chance, device, epoch, state):
    """Two networks in turn on each batch, each with a pass in another thread."""
    if not state:
        state["train"] = DataLoader(Stream(args.steps * 4, args.cost / 4, 0), batch_size=4, num_workers=args.workers,
                                    persistent_workers=args.workers > 0)
        state["todo"], state["done"] = queue.SimpleQueue(), queue.SimpleQueue()

        def backward():
            while True:
                state["done"].put(device.run(state["todo"].get()))

        threading.Thread(target=backward, daemon=True).start()
    log = Log()
    for _ in state["train"]:
        for share in (args.split, 1 - args.split):
            device.run(args.step * share * 0.4)
            state["todo"].put(args.step * share * 0.6 * chance.gauss(1, 0.03))
            state["done"].get()
        log.step(epoch)


def scales(args, chance, device, epoch, state):
    """Batches in sizes that change every few steps, as in detection, from threads that make them ahead."""
    batches, lock = collections.deque(range(args.steps)), threading.Lock()
    ready = queue.Queue(3)

    def make():
        while True:
            with lock:
                if not batches:
                    return
                batches.popleft()
            with open(numpy.__file__, "rb", buffering=0) as file:
                file.read()
            busy(args.cost * chance.uniform(0.5, 1.5))
            ready.put(1)

    for _ in range(max(1, args.workers)):
        threading.Thread(target=make, daemon=True).start()
    log = Log()
    for number in range(args.steps):
        ready.get()
        if number % 5 == 0:
            state["scale"] = chance.choice([0.8, 0.9, 1, 1, 1, 1.1, 1.25])
        device.run(args.step * state["scale"])
        log.step(epoch)


def processes(args, chance, device, epoch, state):
    """Batches from a pool of processes, a network of torch on the CPU."""
    if not state:
        state["pool"] = multiprocessing.Pool(max(1, args.workers))
        state["net"] = torch.nn.Linear(256, 256)
        state["input"] = torch.ones(256, 256)
        begin = time.monotonic()
        for _ in range(50):
            state["net"](state["input"]).sum().backward()
        state["many"] = max(1, int(args.step / (time.monotonic() - begin) * 50))
    log = Log()
    for _ in state["pool"].imap(busy, [args.cost * chance.uniform(0.7, 1.3) for _ in range(args.steps)]):
        for _ in range(state["many"]):
            state["net"](state["input"]).sum().backward()
        log.step(epoch)


def memory(args, chance, device, epoch, state):
    """Everything in memory, one thread: queues work for the GPU, and looks at the loss after some steps."""
    log, ends = Log(), []
    for number in range(1, args.steps + 1):
        busy(args.cost / 4)
        ends.append(device.launch(args.step))
        if number % args.every == 0:
            device.wait(ends[-1])
        elif len(ends) > 8:
            device.wait(ends[-8])
        log.step(epoch)


# Programs without steps.


def episodes(args, chance, device, epoch, state):
    """Plays some rounds, which take as long as they take, and then learns from them: two phases in turn."""
    if not state:
        state["pool"] = multiprocessing.Pool(2)
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        for _ in range(chance.randint(2, 6)):
            state["pool"].map(busy, [chance.expovariate(1 / args.cost) for _ in range(2)])
        for _ in range(chance.randint(3, 9)):
            device.run(args.step * chance.uniform(0.3, 1))


def crawl(args, chance, device, epoch, state):
    """Threads wait for a slow server, each for its own answers; a counter is printed at a regular time."""
    end, lock, count = time.monotonic() + args.seconds, threading.Condition(), [0]

    def fetch(number):
        own = random.Random(number)
        while time.monotonic() < end:
            time.sleep(own.expovariate(1 / args.step))
            with lock:
                count[0] += 1
                lock.notify()

    crew = [threading.Thread(target=fetch, args=(n,)) for n in range(3)]
    for one in crew:
        one.start()
    while time.monotonic() < end:
        with lock:
            lock.wait(args.step * 4)
        busy(chance.uniform(0, 0.02))
    for one in crew:
        one.join()


def render(args, chance, device, epoch, state):
    """Two kinds of tasks in turn for a pool of processes that stays, each as many as there are, as long as they take."""
    if not state:
        state["pool"] = multiprocessing.Pool(2)
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        state["pool"].map(busy, [args.cost * chance.uniform(0.2, 1)] * chance.randint(1, 6), chunksize=1)
        state["pool"].map(busy, [args.cost * chance.uniform(1, 4)] * chance.randint(1, 3), chunksize=1)


def answers(connection):
    while connection.poll(None):
        busy(connection.recv())
        connection.send(None)


def chat(args, chance, device, epoch, state):
    """Asks a process that stays, at random times, and waits for its answer."""
    if not state:
        state["own"], other = multiprocessing.Pipe()
        multiprocessing.Process(target=answers, args=(other,), daemon=True).start()
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        time.sleep(chance.expovariate(1 / args.step))
        state["own"].send(args.cost * chance.uniform(0.2, 2))
        state["own"].recv()


def scripts(args, chance, device, epoch, state):
    """Runs a script of Python at a regular time, and reads what it prints."""
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        next_time = time.monotonic() + args.step * 4
        subprocess.run([sys.executable, "-c", "print(sum(range(10**6)))"], stdout=subprocess.PIPE, check=True)
        time.sleep(max(0, next_time - time.monotonic()))


def cron(args, chance, device, epoch, state):
    """Children that do something for a regular time, and a rest."""
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        child = multiprocessing.Process(target=busy, args=(args.cost * chance.uniform(0.5, 3),))
        child.start()
        child.join()
        time.sleep(args.step * math.ceil(chance.uniform(0, 4)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("--step", type=float, default=0.4)
    parser.add_argument("--cost", type=float, default=0.05)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=int, default=4)
    parser.add_argument("--split", type=float, default=0.5)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    device, chance, state = gpu(), random.Random(args.seed), {}
    for epoch in range(1, args.epochs + 1):
        print(f"Epoch {epoch}/{args.epochs}", flush=True)
        begin = truth.now()
        globals()[args.kind](args, chance, device, epoch, state)
        truth.record("window", begin, truth.now(), f"{epoch}:")


if __name__ == "__main__":
    main()
