"""Labels of what a program does, for the checker of detected windows: loads, phases, checkpoints and epochs.

The labels go to the log of ../../jobs/programs/truth.py, a line each: "THREAD label START END JSON". Nothing of
this is announced to an agent. Only what any program does can be seen from outside.
"""

import atexit
import ctypes
import fcntl
import json
import os
import sys
import time

import truth

now = truth.now
_gpus = os.environ.get("JOBS_GPUS", "")
CHUNK = 4 << 20  # bytes of a read or copy that is logged as one


def record(kind, start, end, **fields):
    truth.record("label", start, end, json.dumps(dict(fields, kind=kind), separators=(",", ":")))


class label:
    """Labels what happens inside of `with`. begins and ends are further times that count as right."""

    def __init__(self, kind, **fields):
        self.kind, self.fields, self.begins, self.ends = kind, fields, [], []

    def __enter__(self):
        self.start = now()
        return self

    def __exit__(self, failed, *_):
        self.close(failed)

    def close(self, failed=None):
        if failed or self.fields.get("aborted"):
            self.fields["aborted"] = True
        record(self.kind, self.start, now(), begins=self.begins, ends=self.ends, **self.fields)


def load(model):
    return label("model_load", name=model)


def phase(name):
    return label("phase", name=name)


def checkpoint(name):
    return label("checkpoint", name=name)


def epoch(number):
    return label("epoch", name=str(number))


def cold(*paths):
    """Ask the checker to drop files from the page cache. A program that did it itself would open them."""
    print("cold", *paths, flush=True)
    sys.stdin.readline()


def pause(seconds):
    with truth.span("other", "pause"):
        time.sleep(seconds)


_device = None


def initialise():
    """Open the device that CUDA opens when it is initialised, as by torch.cuda.is_available(), and keep it open."""
    global _device
    if _device is None:
        _device = open("/dev/nvidia-uvm", "r+b", buffering=0)  # the harness makes it where there is no driver


class Gpu(truth.Accelerator):
    """An emulated GPU whose memory in use is known to the driver's stand-in, as that of a CUDA program is."""

    CONTEXT = 300 << 20  # bytes that the driver takes for a program's first call
    RATE = float(os.environ.get("DETECT_RATE", "1.5e9"))  # bytes per second of a copy to the GPU

    def _hold(self):
        initialise()
        self.held = 0
        self.grow(self.CONTEXT)
        atexit.register(self._leave)

    def grow(self, size):
        """Take, or give back, memory of the GPU."""
        self.held += size
        self._tell()

    def _leave(self):
        """The driver takes the memory of a process back when it ends."""
        self.held = 0
        self._tell()

    def _tell(self):
        with open(os.path.join(_gpus, "lock"), "w") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            path = os.path.join(_gpus, "held.json")
            try:
                with open(path) as file:
                    held = json.load(file)
            except FileNotFoundError:
                held = {}
            held[f"{self.number}:{os.getpid()}"] = self.held
            held = {key: size for key, size in held.items() if size and os.path.exists("/proc/" + key.split(":")[1])}
            replace(path, json.dumps(held))
            replace(os.path.join(_gpus, "gpus.txt"), driver(held))

    def copy(self, size):
        """Copy bytes to the GPU, at the rate of a slow bus. The calling thread copies and waits."""
        end = now() + int(size / self.RATE * 1e9)
        self.grow(size)
        with truth.span("other", "copy"):
            time.sleep(max(end - now(), 0) / 1e9)

    def free(self):
        self.grow(self.CONTEXT - self.held)

    def work(self, seconds, step=0.02, share=0.9):
        """Keep the GPU busy for most of a time."""
        end = now() + int(seconds * 1e9)
        while now() < end:
            self.run(step * share)
            pause(step * (1 - share))


def replace(path, text):
    with open(path + ".new", "w") as file:
        file.write(text)
    os.rename(path + ".new", path)


def driver(held):
    """The state of the driver's stand-in (testdata/fakenvml/README.md)."""
    lines = ["period_us 20000"]
    for number in (0, 1):
        own = {key.split(":")[1]: size for key, size in held.items() if key.startswith(f"{number}:")}
        line = f'gpu {number} busy_file={os.path.join(_gpus, str(number))} memory_used={sum(own.values())}'
        if own:
            line += " processes=" + ",".join(f"{pid}:{size}" for pid, size in own.items())
        lines.append(line)
    return "\n".join(lines) + "\n"


def read_whole(path, into=None):
    """Read a file with read(2), a chunk at a time. into gets each chunk."""
    with open(path, "rb", buffering=0) as file:  # before the memory, because a load begins with the open
        data = bytearray(os.fstat(file.fileno()).st_size)
        view, at = memoryview(data), 0
        while at < len(data):
            with truth.span("read") as one:
                one.argument = size = file.readinto(view[at:at + CHUNK])
            if into:
                into(view[at:at + size])
            at += size
    return data


def keep_memory(size):
    """Take memory before the first load and keep it, so that no load pays for finding it (docs/internals/benches.md)."""
    mallopt = ctypes.CDLL(None).mallopt
    mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD: blocks up to this size are from the heap
    mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: the heap never shrinks
    block = bytearray(size)
    block[::4096] = b"x" * len(block[::4096])


def life(negative=False):
    """Label a program's life. A negative one has no window of any kind."""
    return label("life", name=os.path.basename(sys.argv[0]), negative=negative)
