"""Writes the data of the jobs. Usage: data.py KIND PATH COUNT SIZE SEED"""

import gzip
import io
import json
import os
import pickle
import shutil
import sqlite3
import struct
import sys
import tarfile
import zlib

import numpy
from PIL import Image


def picture(random, size):
    """A JPEG file of size x size pixels: smooth shapes with some noise, as photographs have."""
    coarse = random.integers(0, 255, (12, 12, 3), dtype=numpy.uint8)
    image = numpy.asarray(Image.fromarray(coarse).resize((size, size), Image.BICUBIC), dtype=numpy.int16)
    image = numpy.clip(image + random.integers(-12, 12, image.shape), 0, 255).astype(numpy.uint8)
    out = io.BytesIO()
    Image.fromarray(image).save(out, "JPEG", quality=88)
    return out.getvalue()


def images(path, count, size, random):
    os.makedirs(path)
    for i in range(count):
        with open(os.path.join(path, f"{i:05}.jpg"), "wb") as file:
            file.write(picture(random, size))


def classes(path, count, size, random):
    for label in range(4):
        images(os.path.join(path, f"class{label}"), count // 4, size, random)


def shards(path, count, size, random, each=64):
    os.makedirs(path)
    for first in range(0, count, each):
        with tarfile.open(os.path.join(path, f"{first // each:03}.tar"), "w") as shard:
            for i in range(first, min(first + each, count)):
                data = picture(random, size)
                member = tarfile.TarInfo(f"{i:05}.jpg")
                member.size = len(data)
                shard.addfile(member, io.BytesIO(data))


def rows(count, size, random):
    return random.random((count, size // 4), dtype=numpy.float32)


def memmap(path, count, size, random):
    numpy.save(path, rows(count, size, random))


def raw(path, count, size, random):
    rows(count, size, random).tofile(path)


def hdf5(path, count, size, random):
    import h5py  # here, because it takes a second

    with h5py.File(path, "w") as file:
        file.create_dataset("rows", data=rows(count, size, random), chunks=(1, size // 4))


def checkpoint(path, count, size, random):
    import torch  # here, because it takes a second

    torch.save({f"layer{i}": torch.from_numpy(rows(1, size, random)) for i in range(count)}, path)


def safetensors(path, count, size, random):
    header = {
        f"layer{i}": {"dtype": "F32", "shape": [size // 4], "data_offsets": [i * size, (i + 1) * size]}
        for i in range(count)
    }
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _ in range(count):
            file.write(rows(1, size, random).tobytes())


def table(path, count, size, random):
    values = random.random((count, size // 8))
    numpy.savetxt(path, numpy.column_stack([values[:, 0] > 0.5, values]), "%.5g", ",")


def database(path, count, size, random):
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE images (id INTEGER PRIMARY KEY, data BLOB)")
        file.executemany("INSERT INTO images VALUES (?, ?)", ((i, picture(random, size)) for i in range(count)))
    file.close()


def pickles(path, count, size, random, each=256):
    """Rows of small numbers, which can be compressed to a half."""
    os.makedirs(path)
    for first in range(0, count, each):
        with gzip.open(os.path.join(path, f"{first // each:03}.pkl.gz"), "wb", compresslevel=1) as file:
            pickle.dump(random.integers(0, 16, (each, size), dtype=numpy.uint8), file, protocol=4)


def small(path, count, size, random, each=100):
    for i in range(count):
        folder = os.path.join(path, f"{i // each:03}")
        os.makedirs(folder, exist_ok=True)
        numpy.save(os.path.join(folder, f"{i % each:03}.npy"), rows(1, size, random))


def video(path, count, size, random):
    """A stream of frames of that many bytes. Each frame differs little from the one before."""
    encoder = zlib.compressobj(1)
    frame = random.integers(0, 64, size, dtype=numpy.uint8)
    with open(path, "wb") as file:
        for _ in range(count):
            frame = numpy.roll(frame, 1)
            file.write(encoder.compress(frame.tobytes()))
        file.write(encoder.flush())


def library(path, count, size, random):
    """Debian's scikit-learn, with what it needs; what is not named is imported from where it is."""
    for package in "sklearn", "scipy", "numpy", "joblib":
        shutil.copytree(
            f"/usr/lib/python3/dist-packages/{package}", os.path.join(path, package),
            ignore=shutil.ignore_patterns("tests"),
        )


KINDS = {
    "images": images, "classes": classes, "shards": shards, "npy": memmap, "h5": hdf5, "pt": checkpoint,
    "safetensors": safetensors, "gguf": safetensors, "csv": table, "sqlite": database, "pickles": pickles,
    "small": small, "video": video, "library": library, "rows": raw,
}

if __name__ == "__main__":
    kind, path, count, size, seed = sys.argv[1:]
    KINDS[kind](path, int(count), int(size), numpy.random.default_rng(int(seed)))
