"""Programs without epochs that repeat something. Each announces nothing."""

import argparse
import http.server
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time
import urllib.request

import numpy


def accelerator():
    import truth

    return truth.Accelerator() if os.environ.get("JOBS_GPUS") else None


def read(path):
    with open(path, "rb") as file:
        return file.read()


def use(data, work):
    values = numpy.frombuffer(data, dtype=numpy.uint8).astype(numpy.float32)
    for _ in range(work):
        values = numpy.sqrt(values + 1)
    return float(values[0])


def serve(args, paths):
    """An inference server: a request every so many seconds, with a file for each."""
    gpu, chance = accelerator(), random.Random(args.seed)
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        time.sleep(args.every if args.regular else chance.expovariate(1 / args.every))
        for _ in range(chance.randint(1, 4)):
            use(read(chance.choice(paths)), 5)
        if gpu:
            gpu.run(chance.uniform(0.02, 0.3))


def reload(args, paths):
    """A server that reads its whole model again now and then."""
    gpu, chance, next_load = accelerator(), random.Random(args.seed), 0.0
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        if time.monotonic() >= next_load:
            for path in paths:
                use(read(path), 1)
            next_load = time.monotonic() + args.every * 10
        time.sleep(0.05)
        if gpu:
            gpu.run(chance.uniform(0.01, 0.1))


def once(args, paths):
    """Reads each file once, with a loader for each part."""
    from torch.utils.data import DataLoader

    gpu, chance = accelerator(), random.Random(args.seed)
    left = list(paths)
    while left:
        size = chance.randint(len(paths) // 8, len(paths) // 3)
        part, left = left[:size], left[size:]
        for _ in DataLoader(part, batch_size=8, num_workers=args.workers, collate_fn=lambda b: [use(read(p), 40) for p in b]):
            if gpu:
                gpu.run(args.every / 10)


def timer(args, paths):
    """Starts a program every so many seconds, as cron does."""
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        subprocess.run([sys.executable, __file__, "part", *paths[:60]], check=True)
        time.sleep(args.every * 4)


def search(args, paths):
    """Tries parameters: each trial is a program of its own that trains on all files."""
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        trials = [
            subprocess.Popen([sys.executable, __file__, "part", "--work", str(args.work), *paths]) for _ in range(args.workers)
        ]
        for trial in trials:
            trial.wait()


def pool(args, paths):
    """A pool whose processes are replaced after some tasks."""
    with multiprocessing.Pool(args.workers, maxtasksperchild=args.tasks) as workers:
        for number in range(args.rounds):
            list(workers.imap_unordered(task, [(p, args.work) for p in paths[number::args.rounds]], chunksize=4))


def task(argument):
    path, work = argument
    return use(read(path), work)


def web(args, paths):
    """A web server, and a client that asks for random files."""
    os.chdir(os.path.dirname(paths[0]))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    server.RequestHandlerClass.log_message = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    chance, end = random.Random(args.seed), time.monotonic() + args.seconds
    while time.monotonic() < end:
        name = os.path.basename(chance.choice(paths))
        urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{name}").read()
        time.sleep(args.every / 20)


def replaced(args, paths):
    """Draws items at random, each as often as chance has it: there are no epochs."""
    gpu, chance = accelerator(), random.Random(args.seed)
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        for _ in range(8):
            use(read(chance.choice(paths)), args.work)
        if gpu:
            gpu.run(0.04)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--every", type=float, default=1)
    parser.add_argument("--regular", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tasks", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--work", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("paths", nargs="+", help="files, or a folder of them")
    args = parser.parse_args()
    paths = args.paths
    if os.path.isdir(paths[0]):
        paths = [os.path.join(paths[0], f) for f in sorted(os.listdir(paths[0]))]
    if args.kind == "part":
        for path in paths:
            use(read(path), args.work)
        return
    globals()[args.kind](args, paths)


if __name__ == "__main__":
    main()
