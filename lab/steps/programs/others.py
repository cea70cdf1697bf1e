"""Programs that print epochs and have no steps, or none that can be known. They log none."""

import argparse
import multiprocessing
import os
import random
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy
import truth


class Accelerator(truth.Accelerator):
    def wait(self, end):  # without the log of waits, which reads files
        time.sleep(max(end - truth.now(), 0) / 1e9)


def work(seconds):
    values, end = numpy.ones(4096, dtype=numpy.float32), time.thread_time() + seconds
    while time.thread_time() < end:
        values = numpy.sqrt(values + 1)


def timer(args, chance, over):
    """Does something at a regular time."""
    while not over():
        time.sleep(args.every)
        work(0.02)


def server(args, chance, over):
    """Answers requests that come at regular times, or at random ones, in a pool of threads."""
    port = socket.create_server(("127.0.0.1", 0))
    client = f"""
import random, socket, time
chance = random.Random({args.seed})
while True:
    time.sleep({args.every} if {args.regular} else chance.expovariate(1 / {args.every}))
    with socket.create_connection(("127.0.0.1", {port.getsockname()[1]})) as s:
        s.sendall(b"x"); s.recv(10)
"""
    # Not a child of this program: it belongs to nobody's job.
    outside = subprocess.Popen([sys.executable, "-c", client],
                               start_new_session=True)
    gpu = Accelerator() if os.environ.get("JOBS_GPUS") else None
    pool = ThreadPoolExecutor(2)

    def answer(connection):
        with connection:
            connection.recv(10)
            work(0.02)
            if gpu:
                gpu.run(0.1)
            connection.sendall(b"y")

    while not over():
        pool.submit(answer, port.accept()[0])
    outside.kill()


def search(args, chance, over):
    """Tries parameters in processes: each trial takes another time."""
    with ProcessPoolExecutor(2) as pool:
        while not over():
            for _ in pool.map(work, [chance.uniform(0.2, 3) * args.every for _ in range(4)]):
                pass


def pool(args, chance, over):
    """Hands tasks of a random length to threads, at random times."""
    with ThreadPoolExecutor(2) as threads:
        while not over():
            threads.submit(time.sleep, chance.expovariate(1 / args.every)).result()
            work(chance.uniform(0, 0.1))


def heartbeat(args, chance, over):
    """Computes without a pause. It tells a thread at a regular time that it lives."""
    told = threading.Event()

    def listen():
        while told.wait():
            told.clear()

    threading.Thread(target=listen, daemon=True).start()
    while not over():
        work(args.every)
        told.set()


def listen(queue):
    while queue.get() is not None:
        pass


def logger(args, chance, over):
    """Trains from memory. A process takes what it logs after some steps."""
    gpu, queue = Accelerator(), multiprocessing.Queue()
    process = multiprocessing.Process(target=listen, args=(queue,))
    process.start()
    number = 0
    while not over():
        gpu.run(args.every / 5)
        number += 1
        if number % 5 == 0:
            queue.put({"loss": chance.random()})
    queue.put(None)
    process.join()


def children(args, chance, over):
    """Starts children that work for some time, one after another, and rests."""
    while not over():
        child = multiprocessing.Process(target=work, args=(args.every / 4 * chance.uniform(0.5, 3),))
        child.start()
        child.join()
        time.sleep(args.every / 4 * chance.randint(1, 4))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["timer", "server", "search", "pool", "heartbeat", "logger", "children"])
    parser.add_argument("--every", type=float, default=0.5)
    parser.add_argument("--regular", action="store_true")
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    chance = random.Random(args.seed)
    for epoch in range(2):
        print(f"Epoch {epoch + 1}/2", flush=True)
        begin = time.monotonic()
        globals()[args.kind](args, chance, lambda: time.monotonic() > begin + args.seconds / 2)
        truth.record("window", int(begin * 1e9), truth.now(), f"{epoch + 1}:")


if __name__ == "__main__":
    main()
