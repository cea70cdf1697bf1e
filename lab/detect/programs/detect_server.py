"""A server of a model: reads the weights, copies them to the GPU, compiles (writes .so files), warms up, and
listens.

With --repository, it loads all models of a Triton repository one after another, without the other phases. With
--requests, it answers for so long before each load.
"""

import argparse
import glob
import math
import os
import socket
import tempfile
import time

import label
import truth


def read(path, gpu):
    with label.phase("read"):
        data = label.read_whole(path)
    with label.phase("host_to_device"):
        gpu.copy(len(data))


def compile_for(seconds, folder):
    """Work on the CPU and write libraries, as a compiler of kernels does."""
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        part = time.monotonic() + 0.2
        while time.monotonic() < part:
            math.factorial(500)
        with open(os.path.join(folder, f"kernel{number}.so"), "wb") as file, truth.span("write", 200000):
            file.write(b"\x7fELF" + bytes(200000))
        number += 1


def serve(gpu, seconds):
    """Answer for a while: short work for each request."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        label.pause(0.05)
        gpu.run(0.03)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+", help="files; the shards of one model")
    parser.add_argument("--repository", action="store_true", help="each of them is a folder of models")
    parser.add_argument("--requests", type=float, default=0)
    parser.add_argument("--compile", type=float, default=2)
    parser.add_argument("--warm-up", type=float, default=1)
    parser.add_argument("--work", type=float, default=3)
    args = parser.parse_args()
    gpu = label.Gpu()
    with label.life():
        label.pause(1)
        if args.repository:
            for path in sorted(glob.glob(os.path.join(args.models[0], "*", "1", "*"))):
                with open(os.path.join(os.path.dirname(os.path.dirname(path)), "config.pbtxt")) as file:
                    file.read()
                serve(gpu, args.requests)
                with label.load(path):
                    read(path, gpu)
                gpu.work(args.work / 2)
                label.pause(args.work / 2)
            serve(gpu, args.work)
            return
        load = label.load(os.path.dirname(args.models[0]))
        with load:
            for path in args.models:
                read(path, gpu)
            load.ends.append(label.now())
            with tempfile.TemporaryDirectory() as folder, label.phase("compile"):
                compile_for(args.compile, folder)
            with label.phase("warm_up"):
                gpu.work(args.warm_up)
            listener = socket.create_server(("127.0.0.1", 0))
        serve(gpu, args.work)
        listener.close()


if __name__ == "__main__":
    main()
