"""Writes the data of the jobs. Usage: data.py KIND PATH COUNT SIZE SEED"""

import io
import json
import os
import struct
import sys
import tarfile

import h5py
import numpy
import torch
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


def hdf5(path, count, size, random):
    with h5py.File(path, "w") as file:
        file.create_dataset("rows", data=rows(count, size, random), chunks=(1, size // 4))


def checkpoint(path, count, size, random):
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


KINDS = {
    "images": images, "classes": classes, "shards": shards, "npy": memmap, "h5": hdf5, "pt": checkpoint,
    "safetensors": safetensors, "gguf": safetensors,
}

if __name__ == "__main__":
    kind, path, count, size, seed = sys.argv[1:]
    KINDS[kind](path, int(count), int(size), numpy.random.default_rng(int(seed)))
