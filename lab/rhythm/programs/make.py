"""Writes the data of loop.py and others.py. Usage: make.py KIND PATH COUNT SIZE SEED"""

import io
import os
import sqlite3
import sys
import tarfile

import numpy

kind, path, count, size, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
random = numpy.random.default_rng(seed)


def item():
    return random.bytes(int(size * random.uniform(0.7, 1.3)))


if kind == "files":
    os.makedirs(path)
    for i in range(count):
        with open(os.path.join(path, f"{i:05}.bin"), "wb") as file:
            file.write(item())
elif kind == "shards":
    os.makedirs(path)
    for first in range(0, count, 160):
        with tarfile.open(os.path.join(path, f"{first // 160:03}.tar"), "w") as shard:
            for i in range(first, min(first + 160, count)):
                data = item()
                member = tarfile.TarInfo(f"{i:05}.bin")
                member.size = len(data)
                shard.addfile(member, io.BytesIO(data))
elif kind == "database":
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, data BLOB)")
        file.executemany("INSERT INTO items VALUES (?, ?)", ((i, item()) for i in range(count)))
    file.close()
else:
    with open(path, "wb") as file:
        for _ in range(count):
            file.write(random.bytes(size))
