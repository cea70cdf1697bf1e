"""What a job of `make jobs` logs, so that the checker knows where its time went.

Each line of the log is "THREAD KIND START END ARGUMENT". Times are nanoseconds of CLOCK_MONOTONIC.

    read, write   a call that fetches or stores data; the argument is its size in bytes, and for how many nanoseconds of
                  it the thread was ready but had no core
    fetch         a call that receives data from a server; the argument is as for a read, and the thread's CPU time in it
    wait          for another thread, which the argument names
    gpu           for the accelerator
    other         for something else, which the argument names
    busy          the accelerator computes; the argument is its number
    window        an epoch or a load; the argument is its name and its id
    begin         the program's output marks the begin of a window, and the end of the one before
    machine       at the edges of windows; the argument is sectors read from the disk, and ticks of steal, of all work
                  and of this program

A thread that logs nothing for a time computes. The log is in memory (tmpfs), and a line takes about two microseconds.
"""

import ctypes
import fcntl
import http.client
import io
import json
import mmap
import os
import socket
import struct
import threading
import time

now = time.monotonic_ns
_folder = os.environ["JOBS_LOG"]
_gpus = os.environ.get("JOBS_GPUS", "")
_files = {}  # by process, because a fork must not share them
_local = threading.local()


def name(thread):
    """Name the calling thread in the log; the default is "main"."""
    _local.name = thread


def record(kind, start, end, argument="-"):
    pid = os.getpid()
    file = _files.get(pid)
    if file is None:
        path = os.path.join(_folder, f"{pid}.log")
        file = _files[pid] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    thread = getattr(_local, "name", "main")
    os.write(file, f"{thread} {kind} {start} {end} {argument}\n".encode())


def ready():
    """How long the calling thread has been ready without a core, in nanoseconds."""
    pid, file = getattr(_local, "scheduled", (0, 0))
    if pid != os.getpid():
        file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        _local.scheduled = os.getpid(), file
    return int(os.pread(file, 80, 0).split()[1])


class span:
    """Logs what the calling thread does inside of `with`."""

    def __init__(self, kind, argument="-"):
        self.kind, self.argument = kind, argument

    def __enter__(self):
        self.ready = ready()
        self.cpu = time.thread_time_ns()
        self.start = now()
        return self

    def __exit__(self, *_):
        end = now()
        if self.kind in ("read", "write", "fetch"):
            cpu = time.thread_time_ns() - self.cpu
            self.argument = f"{self.argument}:{ready() - self.ready}" + (f":{cpu}" if self.kind == "fetch" else "")
        record(self.kind, self.start, end, self.argument)


def read_file(path):
    """Read a whole file."""
    with span("read") as one, open(path, "rb") as file:
        data = file.read()
        one.argument = len(data)
    return data


class File:
    """A file for libraries that read from an open one."""

    def __init__(self, path):
        self.file = open(path, "rb")

    def read(self, size=-1):
        with span("read") as one:
            data = self.file.read(size)
            one.argument = len(data)
        return data

    def readinto(self, buffer):
        with span("read") as one:
            one.argument = size = self.file.readinto(buffer)
        return size

    def __getattr__(self, attribute):
        return getattr(self.file, attribute)


class Raw(io.FileIO):
    """A file for io.BufferedReader."""

    def readinto(self, buffer):
        with span("read") as one:
            one.argument = size = super().readinto(buffer)
        return size


def batches(loader, workers):
    """Iterate over a torch DataLoader. Its worker n makes the batches n, n + workers and so on."""
    iterator = iter(loader)
    number = 0
    while True:
        start = now()
        try:
            batch = next(iterator)
        except StopIteration:
            return
        if workers:
            record("wait", start, now(), f"worker{number % workers}")
        number += 1
        yield batch


def name_worker(number):
    """The worker_init_fn of a torch DataLoader."""
    name(f"worker{number}")


class Accelerator:
    """An emulated GPU. The driver's stand-in (testdata/fakenvml) reads its state from a file."""

    def __init__(self, number=0, spins=False):
        self.number, self.spins = number, spins
        self.file = os.open(os.path.join(_gpus, str(number)), os.O_RDWR)
        self.state = mmap.mmap(self.file, 32)
        self._hold()
        if not spins:
            ctypes.CDLL(None).prctl(29, 1)  # PR_SET_TIMERSLACK: a GPU wakes its thread by an interrupt

    def _hold(self):
        """Show this process in the driver's list, after the kernels and the processes that are shown there."""
        fcntl.lockf(self.file, fcntl.LOCK_EX)
        os.pwrite(self.file, struct.pack("=Q", os.getpid()), max(os.fstat(self.file).st_size, 32))
        fcntl.lockf(self.file, fcntl.LOCK_UN)

    def launch(self, seconds):
        """Queue a kernel; return the time when it will be done."""
        fcntl.lockf(self.file, fcntl.LOCK_EX)  # programs share it
        version, done, start, end = struct.unpack("=Qqqq", self.state)
        began = now()
        if began >= end:
            done, start, end = done + end - start, began, began
        began, end = end, end + int(seconds * 1e9)
        struct.pack_into("=Q", self.state, 0, version + 1)
        struct.pack_into("=qqq", self.state, 8, done, start, end)
        struct.pack_into("=Q", self.state, 0, version + 2)
        fcntl.lockf(self.file, fcntl.LOCK_UN)
        record("busy", began, end, self.number)
        return end

    def wait(self, end):
        with span("gpu"):
            if self.spins:
                while now() < end:
                    pass
            else:
                time.sleep(max(end - now(), 0) / 1e9)

    def run(self, seconds):
        self.wait(self.launch(seconds))


class _Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.environ["STALLSPAN_SOCKET"])


def _request(url, fields):
    connection = _Connection("localhost")
    connection.request("POST", url, json.dumps(fields))
    answer = connection.getresponse()
    body = json.load(answer)
    if answer.status >= 400:
        raise RuntimeError(body["error"])
    return body


def _own():
    """The CPU time of this process and all of its descendants, in ticks."""
    ticks, parents = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue  # it ended
            parents[int(entry)], ticks[int(entry)] = int(fields[1]), sum(map(int, fields[11:15]))
    family, size = {os.getpid()}, 0
    while len(family) > size:
        size = len(family)
        family.update(pid for pid, parent in parents.items() if parent in family)
    return sum(ticks[pid] for pid in family)


def machine():
    """Log the state of the machine. The caller is outside of any window."""
    sectors = 0
    if os.environ.get("JOBS_DEVICE"):
        with open(f"/sys/block/{os.environ['JOBS_DEVICE']}/stat") as file:
            sectors = int(file.read().split()[2])
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, soft, steal = map(int, file.readline().split()[1:9])
    record("machine", now(), 0, f"{sectors}:{steal}:{user + nice + system + irq + soft}:{_own()}")


def begin(label):
    """Log that the program's output marks the begin of a window right after this call; "-" is the end of the last."""
    machine()
    record("begin", now(), 0, label)


class window:
    """Announces a window where there is a program to tell, and logs it."""

    def __init__(self, label, kind, **fields):
        self.label, self.fields = label, dict(fields, kind=kind)

    def __enter__(self):
        self.id = ""
        if "STALLSPAN_SOCKET" in os.environ:
            machine()
            self.id = _request("/v1/windows", self.fields)["id"]
        self.start = now()
        return self

    def __exit__(self, *_):
        record("window", self.start, now(), f"{self.label}:{self.id}")
        if self.id:
            _request(f"/v1/windows/{self.id}/end", {})
            machine()
