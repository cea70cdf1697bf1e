"""Loads GGUF files in parts: a map with MAP_POPULATE, a map that several threads touch, or reads of 1 MiB into one
buffer from which the GPU copies. Afterwards memory for the context is taken. With --die, the program is killed
in the middle."""

import argparse
import json
import mmap
import os
import signal
import struct
import threading

import label
import truth

PIECE = 1 << 20


def table_of(path):
    with open(path, "rb") as file:
        _, _, _, length = struct.unpack("<4sIQQ", file.read(24))
        return 24 + length, json.loads(file.read(length))


def populate(path, gpu):
    size = os.path.getsize(path)
    with open(path, "rb") as file, truth.span("read", size):
        area = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, prot=mmap.PROT_READ)
    for _, _, length in table_of(path)[1]:
        gpu.copy(length)
    return area


def touched(path, gpu, count):
    with open(path, "rb") as file:
        area = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    size = len(area)

    def part(number):
        truth.name(f"toucher{number}")
        for at in range(size * number // count, size * (number + 1) // count, PIECE):
            with truth.span("read", PIECE):
                area[at:at + PIECE:4096]

    threads = [threading.Thread(target=part, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for number, thread in enumerate(threads):
        start = truth.now()
        thread.join()
        truth.record("wait", start, truth.now(), f"toucher{number}")
    gpu.copy(size)
    return area


def staged(path, gpu, die):
    start, table = table_of(path)
    buffer = memoryview(bytearray(PIECE))
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        for number, (_, _, length) in enumerate(table):
            while length > 0:
                with truth.span("read") as one:
                    one.argument = got = file.readinto(buffer[:min(length, PIECE)])
                gpu.copy(got)
                length -= got
            if die and number > len(table) // 2:
                die()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--how", choices=("populate", "touch", "stage"))
    parser.add_argument("--threads", type=int, default=3)
    parser.add_argument("--die", action="store_true")
    parser.add_argument("--work", type=float, default=3)
    args = parser.parse_args()
    gpu = label.Gpu()
    life = label.life()
    life.__enter__()
    label.pause(1)
    load = label.load(args.parts[0])
    load.__enter__()

    def die():
        load.fields["aborted"] = True
        load.close()
        life.close()
        os.kill(os.getpid(), signal.SIGTERM)

    areas = []
    for path in args.parts:
        if args.how == "populate":
            areas.append(populate(path, gpu))
        elif args.how == "touch":
            areas.append(touched(path, gpu, args.threads))
        else:
            staged(path, gpu, die if args.die else None)
    load.close()
    gpu.grow(1 << 30)  # the context
    gpu.work(args.work)
    life.close()


if __name__ == "__main__":
    main()
