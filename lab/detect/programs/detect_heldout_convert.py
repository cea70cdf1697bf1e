"""Makes files of a model from those of another format, tensor by tensor.

Without a GPU, as most converters: half precision of all tensors goes to a GGUF. The program drives no GPU, keeps no
tensor and uses no weight, so that nothing is loaded, and it stores nothing of its own: there is no label.

With --gpu, as a tool that quantises: first all weights go to the GPU, which is a load. Then they come back, a quarter
as large, and are stored, which is a checkpoint: weights that the program has made, from the first write until all
files have their last names.
"""

import argparse
import glob
import json
import os
import struct
import time

import label
import numpy
import truth


def tensors(path):
    """The tensors of a safetensors file, read one by one."""
    with open(path, "rb", buffering=0) as file:
        (length,) = struct.unpack("<Q", file.read(8))
        table = json.loads(file.read(length))
        table.pop("__metadata__", None)
        for name, one in table.items():
            start, end = one["data_offsets"]
            data = memoryview(bytearray(end - start))
            file.seek(8 + length + start)
            at = 0
            while at < len(data):
                with truth.span("read") as part:
                    part.argument = got = file.readinto(data[at:at + label.CHUNK])
                at += got
            yield name, data


def convert(paths, into):
    sizes, table, at = [], [], 0
    for path in paths:
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
        for name, one in header.items():
            if name != "__metadata__":
                sizes.append((name, (one["data_offsets"][1] - one["data_offsets"][0]) // 2))
    for name, size in sizes:
        table.append([name, at, size])
        at += size
    text = json.dumps(table).encode()
    with open(into, "wb") as out:
        out.write(b"GGUF" + struct.pack("<IQQ", 3, len(table), len(text)) + text)
        for path in paths:
            for _, data in tensors(path):
                half = numpy.frombuffer(data, dtype=numpy.float32).astype(numpy.float16).tobytes()
                with truth.span("write", len(half)):
                    out.write(half)


def quantise(paths, into, gpu, work):
    weights = []
    with label.load(os.path.dirname(paths[0])):
        for path in paths:
            for name, data in tensors(path):
                gpu.copy(len(data))
                weights.append((name, len(data)))
    gpu.work(work)
    os.makedirs(into)
    with label.checkpoint(into):
        for number, part in enumerate((weights[::2], weights[1::2]), 1):
            path = os.path.join(into, f"model-{number:05}-of-00002.safetensors")
            table, at = {}, 0
            for name, size in part:
                table[name] = {"dtype": "U8", "shape": [size // 4], "data_offsets": [at, at + size // 4]}
                at += size // 4
            text = json.dumps(table).encode()
            with open(path + ".tmp", "wb") as out:
                out.write(struct.pack("<Q", len(text)) + text)
                for _, size in part:
                    with truth.span("other", "copy"):  # from the GPU, at the rate of the bus
                        time.sleep(size / 4 / gpu.RATE)
                    with truth.span("write", size // 4):
                        out.write(os.urandom(size // 4))
                out.flush()
                with truth.span("write", 0):
                    os.fsync(out.fileno())
            os.rename(path + ".tmp", path)
    gpu.work(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", help="a folder of safetensors")
    parser.add_argument("into")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--work", type=float, default=3)
    args = parser.parse_args()
    paths = sorted(glob.glob(os.path.join(args.model, "*.safetensors")))
    with label.life(negative=not args.gpu):
        label.pause(1)
        if args.gpu:
            gpu = label.Gpu()
            label.pause(1)
            quantise(paths, args.into, gpu, args.work)
        else:
            convert(paths, args.into)
            label.pause(1)


if __name__ == "__main__":
    main()
