"""Writes the models and data sets of a case: models.py < a list of JSON objects, one a line.

Keys: kind, path, seed, size (bytes of all weights), files (shards), tensors (of each shard), name, and form, the
format of a file whose name says another.
"""

import json
import os
import pickle
import struct
import sys

import numpy
import torch


def tensors(size, count):
    """Names and sizes in bytes, whole floats: sizes differ as those of embeddings and of norms do."""
    shares = [1 + 3 * (n % 4 == 0) for n in range(count)]
    return [(f"layers.{n}.weight", size * share // sum(shares) // 4 * 4) for n, share in enumerate(shares)]


def fill(size, seed):
    return numpy.random.default_rng(seed).integers(0, 2**62, size // 8 + 1, dtype=numpy.int64).tobytes()[:size]


def safetensors(path, size, count, seed):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, length in tensors(size, count):
        header[name] = {"dtype": "F32", "shape": [length // 4], "data_offsets": [at, at + length]}
        at += length
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + fill(at, seed))


def state_dict(path, size, count, seed):
    data = numpy.frombuffer(fill(size, seed), dtype=numpy.float32)
    state, at = {}, 0
    for name, length in tensors(size, count):
        state[name] = torch.from_numpy(data[at // 4:(at + length) // 4].copy())
        at += length
    torch.save(state, path)


def gguf(path, size, count, seed):
    """The magic and version of the format; the table of tensors is simplified to JSON."""
    table, at = [], 0
    for name, length in tensors(size, count):
        table.append([name, at, length])
        at += length
    text = json.dumps(table).encode()
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, count, len(text)) + text + fill(at, seed))


def npz(path, size, count, seed):
    numpy.savez(path, **{name: numpy.frombuffer(fill(length, seed + n), dtype=numpy.uint8)
                         for n, (name, length) in enumerate(tensors(size, count))})


def raw(path, size, _, seed):
    with open(path, "wb") as file:
        file.write(fill(size, seed))


WRITERS = {"safetensors": safetensors, "pt": state_dict, "pth": state_dict, "bin": state_dict, "gguf": gguf, "npz": npz,
           "ckpt": state_dict}


def write(path, size, count, seed, form=""):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    size &= ~0xfff
    WRITERS.get(form or path.rpartition(".")[2], raw)(path, size, count, seed)


def shards(spec, seed, folder, name):
    """Shards as Hugging Face names them, with their index; one file has no number."""
    stem, _, end = name.rpartition(".")
    many = spec.get("files", 1)
    names = [name] if many == 1 else [f"{stem}-{n + 1:05}-of-{many:05}.{end}" for n in range(many)]
    for n, one in enumerate(names):
        write(os.path.join(folder, one), spec["size"] // many, spec.get("tensors", 24), seed + n)
    if many > 1:
        places = {f"layers.{n}": one for n, one in enumerate(names)}
        index = {"metadata": {"total_size": spec["size"]}, "weight_map": places}
        text(os.path.join(folder, name + ".index.json"), json.dumps(index))
    text(os.path.join(folder, "config.json"), json.dumps({"architectures": ["Some"], "hidden_size": 4096}))
    text(os.path.join(folder, "tokenizer.json"), json.dumps({str(n): n for n in range(30000)}))


def text(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(content)


def hub(spec, seed):
    """The cache of Hugging Face: names are links to blobs."""
    root = spec["path"]
    blobs, snapshot = os.path.join(root, "blobs"), os.path.join(root, "snapshots", f"{seed:040x}")
    shards(spec, seed, snapshot, spec.get("name", "model.safetensors"))
    os.makedirs(blobs)
    for n, name in enumerate(sorted(os.listdir(snapshot))):
        blob = f"{seed * 1000 + n:064x}"
        os.rename(os.path.join(snapshot, name), os.path.join(blobs, blob))
        os.symlink(os.path.join("..", "..", "blobs", blob), os.path.join(snapshot, name))
    text(os.path.join(root, "refs", "main"), f"{seed:040x}")


def triton(spec, seed):
    """A model repository of Triton with so many models."""
    for n in range(spec.get("files", 1)):
        folder = os.path.join(spec["path"], f"model{n}")
        name = spec.get("name", "model.plan")
        text(os.path.join(folder, "config.pbtxt"), f'name: "model{n}"\nmax_batch_size: 8\n')
        write(os.path.join(folder, "1", name), spec["size"] // spec.get("files", 1), 8, seed + n)


def many(spec, seed):
    """Data sets in shards: folder/NAME-00000.END."""
    for n in range(spec["files"]):
        path = os.path.join(spec["path"], f"{spec.get('name', 'shard')}-{n:05}.{spec['end']}")
        write(path, spec["size"] // spec["files"], 8, seed + n, spec.get("form", ""))


def pickled(spec, seed):
    """A dictionary of arrays, with protocol 4 of pickle."""
    os.makedirs(os.path.dirname(spec["path"]), exist_ok=True)
    state = {name: numpy.frombuffer(fill(length, seed + n), dtype=numpy.uint8)
             for n, (name, length) in enumerate(tensors(spec["size"], spec.get("tensors", 24)))}
    with open(spec["path"], "wb") as file:
        pickle.dump(state, file, 4)


def farm(spec, seed):
    """Releases of links into a store of files that are named by their hash, and a link to the last release."""
    root = spec["path"]
    folder = os.path.join(root, "releases", "7")
    shards(spec, seed, folder, spec.get("name", "model.safetensors"))
    for n, name in enumerate(sorted(os.listdir(folder))):
        key = f"{seed * 1000 + n:064x}"[::-1]
        place = os.path.join("store", key[:2], key)
        os.makedirs(os.path.join(root, "store", key[:2]), exist_ok=True)
        os.rename(os.path.join(folder, name), os.path.join(root, place))
        os.symlink(os.path.join("..", "..", place), os.path.join(folder, name))
    os.symlink(os.path.join("releases", "7"), os.path.join(root, "current"))


def one_file(spec, seed):
    write(spec["path"], spec["size"], spec.get("tensors", 24), seed, spec.get("form", ""))


KINDS = {"file": one_file,
         "shards": lambda spec, seed: shards(spec, seed, spec["path"], spec.get("name", "model.safetensors")),
         "hub": hub, "triton": triton, "many": many, "pickle": pickled, "farm": farm}


if __name__ == "__main__":
    for number, line in enumerate(sys.stdin):
        one = json.loads(line)
        KINDS[one["kind"]](one, one["seed"] + number * 100)
