"""Loads a model in a way that people use, works, and loads it again: from the disk, or from memory.

pread: the header of each safetensors file, and a pread for each tensor into memory of its own.
touch: a map of all, whose pieces are touched in a random order as layers ask for them.
zip: torch.load(mmap=True) of newer versions: a private map of the file, whose tensors are places in it.
pool: an index, and threads that read a shard each, while the first thread copies what is there to the GPU.
direct: O_DIRECT reads into aligned memory.
lock: a map of a GGUF that mlock fetches step by step, half of which is copied.
pickle: pickle.load of a dictionary of arrays.
"""

import argparse
import ctypes
import glob
import json
import mmap
import os
import pickle
import queue
import random
import struct
import threading
import zipfile

import label
import numpy
import truth

PIECE = 2 << 20


def table_of(file):
    """The begins and ends of the tensors of a safetensors file, in their order."""
    (length,) = struct.unpack("<Q", os.pread(file, 8, 0))
    table = json.loads(os.pread(file, length, 8))
    table.pop("__metadata__", None)
    places = [one["data_offsets"] for one in table.values()]
    return sorted((8 + length + start, 8 + length + end) for start, end in places)


def fetch(file, start, end):
    """pread until all is there."""
    data = memoryview(bytearray(end - start))
    at = start
    while at < end:
        with truth.span("read") as one:
            one.argument = got = os.preadv(file, [data[at - start:min(at - start + label.CHUNK, end - start)]], at)
        at += got
    return data


def pread(paths, gpu):
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        for start, end in table_of(file):
            gpu.copy(len(fetch(file, start, end)))
        os.close(file)


def touch(paths, gpu):
    for path in paths:
        with open(path, "rb") as file:
            area = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        data = numpy.frombuffer(area, dtype=numpy.uint8)
        starts = list(range(0, len(data), PIECE))
        random.shuffle(starts)
        for at in starts:
            with truth.span("read", PIECE):
                piece = data[at:at + PIECE].copy()
            gpu.copy(len(piece))


def zipped(paths, gpu):
    for path in paths:
        with open(path, "rb") as file:
            with zipfile.ZipFile(file) as table:
                infos = table.infolist()
                table.read(next(one for one in infos if one.filename.endswith("data.pkl")))
            places = []
            for one in infos:
                if "/data/" in one.filename:
                    name, extra = struct.unpack("<HH", os.pread(file.fileno(), 4, one.header_offset + 26))
                    places.append((one.header_offset + 30 + name + extra, one.file_size))
            area = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        for start, size in places:
            for at in range(start, start + size, label.CHUNK):
                with truth.span("read", label.CHUNK):
                    part = numpy.frombuffer(area, numpy.uint8, min(label.CHUNK, start + size - at), at).copy()
                gpu.copy(len(part))


def pool(paths, gpu, count=3):
    ready = [queue.Queue() for _ in paths]

    def reader(number):
        truth.name(f"reader{number}")
        for n in range(number, len(paths), count):
            file = os.open(paths[n], os.O_RDONLY)
            for start, end in table_of(file):
                ready[n].put(fetch(file, start, end))
            os.close(file)
            ready[n].put(None)

    with open(glob.glob(os.path.join(os.path.dirname(paths[0]), "*.index.json"))[0]) as index:
        json.load(index)
    threads = [threading.Thread(target=reader, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for n, one in enumerate(ready):
        while True:
            start = truth.now()
            data = one.get()
            truth.record("wait", start, truth.now(), f"reader{n % count}")
            if data is None:
                break
            gpu.copy(len(data))
    for thread in threads:
        thread.join()


def direct(paths, gpu):
    buffer = mmap.mmap(-1, label.CHUNK)  # aligned to a page
    for path in paths:
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        size, at = os.fstat(file).st_size, 0
        while at < size:
            with truth.span("read") as one:
                one.argument = got = os.preadv(file, [buffer], at)
            gpu.copy(got)
            at += got
        os.close(file)


def locked(paths, gpu):
    """Returns the maps, which stay as long as the model is used."""
    libc = ctypes.CDLL(None, use_errno=True)
    areas = []
    for path in paths:
        with open(path, "rb") as file:
            _, _, _, length = struct.unpack("<4sIQQ", file.read(24))
            table = json.loads(file.read(length))
            area = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        data = numpy.frombuffer(area, dtype=numpy.uint8)
        step = 16 << 20
        for at in range(0, len(data), step):
            part = min(step, len(data) - at)
            with truth.span("read", part):
                if libc.mlock(ctypes.c_void_p(data.ctypes.data + at), ctypes.c_size_t(part)):
                    raise OSError(ctypes.get_errno(), "mlock")
        for number, (_, _, size) in enumerate(table):
            if number % 2:
                gpu.copy(size)
        areas.append((area, data))
    return areas


def unpickled(paths, gpu):
    for path in paths:
        file = truth.File(path)
        state = pickle.load(file)
        file.close()
        for one in state.values():
            gpu.copy(one.nbytes)


WAYS = {"pread": pread, "touch": touch, "zip": zipped, "pool": pool, "direct": direct, "lock": locked,
        "pickle": unpickled}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", help="a file, or the folder of safetensors")
    parser.add_argument("--how", choices=WAYS)
    parser.add_argument("--again", choices=("disk", "memory", "never"), default="memory")
    parser.add_argument("--before", type=float, default=1)
    parser.add_argument("--work", type=float, default=3)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    random.seed(args.seed)
    paths = sorted(glob.glob(os.path.join(args.model, "*.safetensors"))) or [args.model]
    gpu = label.Gpu()
    with label.life():
        label.pause(args.before)
        for number in range(1 if args.again == "never" else 2):
            if number and args.again == "disk":
                label.cold(*paths)
            with label.load(args.model):
                kept = WAYS[args.how](paths, gpu)
            gpu.work(args.work)
            del kept
            gpu.free()
            label.pause(args.work / 2)


if __name__ == "__main__":
    main()
