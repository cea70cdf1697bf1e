"""Writes the data sets of held-out cases, for models.py: real formats, with the libraries that are in Debian."""

import io
import os
import pickle
import sqlite3
import tarfile

import numpy

ROW = 48 << 10  # bytes of a sample


def sample(generator, size=ROW):
    return generator.integers(0, 256, size, dtype=numpy.uint8)


def tars(spec, seed):
    """Shards of samples as WebDataset has them: KEY.npy and KEY.cls."""
    generator = numpy.random.default_rng(seed)
    os.makedirs(spec["path"])
    count = max(1, spec["size"] // spec["files"] // ROW)
    for number in range(spec["files"]):
        with tarfile.open(os.path.join(spec["path"], f"train-{number:06}.tar"), "w") as shard:
            for n in range(count):
                array = io.BytesIO()
                numpy.save(array, sample(generator))
                for end, data in ((".npy", array.getvalue()), (".cls", b"%d" % (n % 10))):
                    info = tarfile.TarInfo(f"{number:04}{n:06}{end}")
                    info.size = len(data)
                    shard.addfile(info, io.BytesIO(data))


def lmdb_rows(spec, seed):
    import lmdb

    generator = numpy.random.default_rng(seed)
    os.makedirs(os.path.dirname(spec["path"]), exist_ok=True)
    with lmdb.open(spec["path"], map_size=2 * spec["files"] * ROW + (64 << 20), sync=False) as store:
        with store.begin(write=True) as change:
            for n in range(spec["files"]):
                change.put(b"%08d" % n, sample(generator).tobytes())


def sqlite_rows(spec, seed):
    generator = numpy.random.default_rng(seed)
    os.makedirs(os.path.dirname(spec["path"]), exist_ok=True)
    store = sqlite3.connect(spec["path"])
    store.execute("PRAGMA page_size = 16384")
    store.execute("CREATE TABLE samples (id INTEGER PRIMARY KEY, data BLOB)")
    store.executemany("INSERT INTO samples VALUES (?, ?)",
                      ((n, sample(generator).tobytes()) for n in range(spec["files"])))
    store.commit()
    store.close()


def hdf5_rows(spec, seed):
    import h5py

    generator = numpy.random.default_rng(seed)
    os.makedirs(os.path.dirname(spec["path"]), exist_ok=True)
    with h5py.File(spec["path"], "w") as file:
        data = file.create_dataset("samples", (spec["files"], ROW), "u1", chunks=(4, ROW))
        for n in range(0, spec["files"], 64):
            last = min(n + 64, spec["files"])
            data[n:last] = sample(generator, (last - n, ROW))


def zarr_rows(spec, seed):
    """An array in a folder, a file for each chunk."""
    import zarr

    generator = numpy.random.default_rng(seed)
    data = zarr.open(spec["path"], "w", shape=(spec["files"], ROW), chunks=(16, ROW), dtype="u1")
    for n in range(0, spec["files"], 16):
        last = min(n + 16, spec["files"])
        data[n:last] = sample(generator, (last - n, ROW))


def jpegs(spec, seed):
    """Folders of classes with images."""
    from PIL import Image

    generator = numpy.random.default_rng(seed)
    base = numpy.asarray(Image.fromarray(sample(generator, (40, 54, 3))).resize((500, 375)))
    for n in range(spec["files"]):
        folder = os.path.join(spec["path"], f"n{n % 5:08}")
        os.makedirs(folder, exist_ok=True)
        pixels = numpy.roll(base, int(generator.integers(500)), 1) // 2 + sample(generator, (375, 500, 1)) // 6
        Image.fromarray(pixels.astype(numpy.uint8)).save(os.path.join(folder, f"{n:06}.JPEG"), quality=90)


def csv_parts(spec, seed):
    generator = numpy.random.default_rng(seed)
    os.makedirs(spec["path"])
    for number in range(spec["files"]):
        rows = generator.integers(0, 10**9, (spec["size"] // spec["files"] // 195, 20))
        with open(os.path.join(spec["path"], f"part-{number:05}.csv"), "w") as file:
            file.write(",".join(f"c{n}" for n in range(20)) + "\n")
            file.writelines(",".join(map(str, row)) + "\n" for row in rows.tolist())


def pickled(spec, seed):
    """A dictionary of arrays, with protocol 4 of pickle."""
    from models import fill, tensors

    os.makedirs(os.path.dirname(spec["path"]), exist_ok=True)
    state = {name: numpy.frombuffer(fill(length, seed + n), dtype=numpy.uint8)
             for n, (name, length) in enumerate(tensors(spec["size"], spec.get("tensors", 24)))}
    with open(spec["path"], "wb") as file:
        pickle.dump(state, file, 4)


def farm(spec, seed):
    """Releases of links into a store of files that are named by their hash, and a link to the last release."""
    from models import shards

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


KINDS = {"tars": tars, "lmdb": lmdb_rows, "sqlite": sqlite_rows, "hdf5": hdf5_rows, "zarr": zarr_rows, "jpegs": jpegs,
         "csv": csv_parts, "pickle": pickled, "farm": farm}
