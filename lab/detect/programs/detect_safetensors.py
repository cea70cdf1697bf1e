"""Reads safetensors files: a map and a copy of each tensor, or pread in several threads; shards in sequence, or in a
process of its own for each part, with a GPU of its own."""

import argparse
import glob
import json
import mmap
import os
import struct
import threading

import label
import numpy
import truth


def header(file):
    """The tensors of a file: name, begin and end in it."""
    (length,) = struct.unpack("<Q", os.pread(file, 8, 0))
    table = json.loads(os.pread(file, length, 8))
    table.pop("__metadata__", None)
    return [(name, *(8 + length + at for at in one["data_offsets"])) for name, one in table.items()]


def mapped(path, gpu):
    """A map; each tensor is copied to memory and from there to the GPU."""
    with open(path, "rb", buffering=0) as file:
        table = header(file.fileno())
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as area, memoryview(area) as view:
            for _, start, end in table:
                with truth.span("read", end - start):
                    tensor = numpy.frombuffer(view[start:end], dtype=numpy.float32).copy()
                gpu.copy(tensor.nbytes)


def threads(path, gpu, count):
    """Threads read parts of the file with pread; the tensors go to the GPU when all is in memory."""
    first = os.open(path, os.O_RDONLY)  # before the memory, because a load begins with the open
    size = os.fstat(first).st_size
    data = bytearray(size)
    view = memoryview(data)

    def part(number):
        truth.name(f"reader{number}")
        file = os.open(path, os.O_RDONLY)
        for at in range(size * number // count, size * (number + 1) // count, label.CHUNK):
            end = min(at + label.CHUNK, size * (number + 1) // count)
            with truth.span("read", end - at):
                os.preadv(file, [view[at:end]], at)
        os.close(file)

    with label.phase("read"):
        all_threads = [threading.Thread(target=part, args=(n,)) for n in range(count)]
        for thread in all_threads:
            thread.start()
        for n, thread in enumerate(all_threads):
            start = truth.now()
            thread.join()
            truth.record("wait", start, truth.now(), f"reader{n}")
    os.close(first)
    with label.phase("host_to_device"):
        gpu.copy(size)


def run(files, args, gpu):
    for path in files:
        if args.threads:
            threads(path, gpu, args.threads)
        else:
            mapped(path, gpu)


def parallel(files, args):
    """Each process loads its part of the shards to its own GPU, and then waits for the others."""
    began, ended = os.pipe(), os.pipe()
    children = []
    for rank in range(args.processes):
        pid = os.fork()
        if pid:
            children.append(pid)
            continue
        truth.name(f"rank{rank}")
        gpu = label.Gpu(rank)
        while os.read(began[0], 1) == b"l":
            run(files[rank::args.processes], args, gpu)
            os.write(ended[1], b"x")
            gpu.work(args.work)
            gpu.free()
        os._exit(0)
    with label.life():
        for _ in range(args.loads):
            label.pause(args.work)
            with label.load(args.folder):
                os.write(began[1], b"l" * args.processes)
                for _ in children:
                    os.read(ended[0], 1)
            label.pause(2 * args.work)
        os.write(began[1], b"e" * args.processes)
        for pid in children:
            os.waitpid(pid, 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", help="of the shards, or one file")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--loads", type=int, default=2)
    parser.add_argument("--work", type=float, default=2)
    args = parser.parse_args()
    files = sorted(glob.glob(os.path.join(args.folder, "*.safetensors"))) or [args.folder]
    if args.processes:
        parallel(files, args)
        return
    label.keep_memory(sum(map(os.path.getsize, files)))
    gpu = label.Gpu()
    with label.life():
        for _ in range(args.loads):
            label.pause(args.work)
            with label.load(args.folder):
                if os.path.isdir(args.folder):
                    with open(glob.glob(os.path.join(args.folder, "*.index.json"))[0]) as index:
                        json.load(index)
                run(files, args, gpu)
            gpu.work(args.work)
            gpu.free()


if __name__ == "__main__":
    main()
