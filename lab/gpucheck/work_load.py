"""Loads a model's weights to the GPU (safetensors), cold and again from memory, each an announced model load.

Without a GPU (--fake) the tensors are read and stay where they are."""

import json
import os
import struct
import time

import announce
import files

TENSORS, SECONDS = 16, 25  # in the file; to write it, about


def write_model(path, size):
    """A safetensors file: the header's length in 8 bytes, little-endian, the header as JSON, then the tensors."""
    count, each = TENSORS, size // TENSORS // 4096 * 4096
    header = {
        f"layer.{n}.weight": {"dtype": "BF16", "shape": [each // 2], "data_offsets": [n * each, (n + 1) * each]}
        for n in range(count)
    }
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 4096)  # as the format allows: the tensors then begin at a page
    head = struct.pack("<Q", len(text)) + text
    whole = len(head) + count * each
    if files.write(path, whole, 45, head) != whole:
        raise RuntimeError(f"a model of {size >> 20} MiB cannot be written within 45 s")
    return whole


def fitting(path, size, fake):
    """A size that this disk can be given in time, and this GPU can hold."""
    if fake:
        return size
    import torch

    began, trial = time.perf_counter(), min(size, 512 << 20)
    files.write(path, trial)
    speed = trial / (time.perf_counter() - began)
    return int(min(size, SECONDS * speed, torch.cuda.mem_get_info()[0] // 2))


def tensors(file):
    """Names with their places in the file, in the file's order."""
    length = struct.unpack("<Q", file.read(8))[0]
    header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    for name, said in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = said["data_offsets"]
        yield name, said, 8 + length + begin, end - begin


class Library:
    """The safetensors library, as programs use it."""

    def __init__(self, folder):
        import safetensors
        import safetensors.torch
        import torch

        self.load_file, self.torch = safetensors.torch.load_file, torch
        self.name = "safetensors " + getattr(safetensors, "__version__", "")
        trial = os.path.join(folder, "trial.safetensors")  # what is done once is not part of the cold load
        write_model(trial, TENSORS * 4096)
        try:
            self.load(trial)
        finally:
            os.remove(trial)

    def load(self, path):
        weights = self.load_file(path, device="cuda")
        self.torch.cuda.synchronize()
        if len(weights) != TENSORS:
            raise RuntimeError(f"{len(weights)} tensors of {TENSORS}")
        return weights


class Own:
    """Reads into one pinned buffer, and from there to the GPU."""

    def __init__(self, size, fake, why):
        self.torch, self.name = None, f"a reader of our own ({why})"
        if fake:
            self.buffer = bytearray(size)
            return
        import torch

        self.torch = torch
        self.pinned = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        self.buffer = memoryview(self.pinned.numpy())
        self.pinned.to("cuda")
        torch.cuda.synchronize()

    def load(self, path):
        weights = {}
        with open(path, "rb", buffering=0) as file:
            for name, said, at, size in tensors(file):
                file.seek(at)
                view, done = memoryview(self.buffer)[:size], 0
                while done < size:
                    done += file.readinto(view[done:])
                if self.torch:
                    weights[name] = self.pinned[:size].to("cuda").view(self.torch.bfloat16).view(said["shape"])
        if self.torch:
            self.torch.cuda.synchronize()
        return weights


def loader(size, path, fake):
    if fake:
        return Own(size, fake, "there is no GPU")
    try:
        return Library(os.path.dirname(path))
    except Exception as error:  # a library that is not there, or does not work here
        return Own(size, fake, f"{type(error).__name__}: {error}"[:200])


def main():
    made = announce.parser(__doc__)
    made.add_argument("--path", required=True)
    made.add_argument("--size", type=int, required=True)
    made.add_argument("--gpu", default="")
    args = announce.parse(made)
    size = fitting(args.path, args.size, args.fake)
    whole = write_model(args.path, size)
    reader = loader(size // TENSORS + 4096, os.path.abspath(args.path), args.fake)
    ids = {"gpu_ids": [args.gpu]} if args.gpu else {}
    took = {}
    for model in ("cold", "warm"):
        if model == "cold":
            files.forget(args.path)
        time.sleep(0.3)
        with announce.window(kind="model_load", model=model, path=os.path.abspath(args.path), **ids):
            began = time.perf_counter()
            weights = reader.load(args.path)
            took[model] = time.perf_counter() - began
        del weights
        announce.say(args.out, {"size": whole, "reader": reader.name, "took_s": took})
    time.sleep(1.5)


if __name__ == "__main__":
    main()
