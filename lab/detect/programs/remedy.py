"""Does what its standard input says, a line each, and answers with a line each:

    load PATH      load a model in a window that is announced; the answer is the window's report
    preload PATH   let another program read a file, and do not wait for it
    lock PATH      keep a file in memory from now on
    read PATH      read a file once, as any other program does
"""

import ctypes
import json
import mmap
import os
import subprocess
import sys

import label
import numpy
import truth

kept = []
readers = []


def load(path):
    window = truth._request("/v1/windows", {"kind": "model_load", "model": "model", "path": path})
    file = os.open(path, os.O_RDONLY)
    buffer = bytearray(label.CHUNK)
    while True:
        got = os.readv(file, [buffer])
        if not got:
            break
        part = numpy.frombuffer(buffer, dtype=numpy.uint8, count=got)
        part.astype(numpy.float32).sum()  # some work for each byte, as a conversion
    os.close(file)
    return truth._request(f"/v1/windows/{window['id']}/end", {})


def preload(path):
    # One call of posix_fadvise reads no more than the disk's read-ahead.
    readers.append(subprocess.Popen(["cat", path], stdout=subprocess.DEVNULL))
    return {}


def lock(path):
    with open(path, "rb") as file:
        area = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    # A private map of a file is of the file's own pages until it is written.
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(len(area)), 1)  # PROT_READ: locking must not copy the pages
    if libc.mlock(ctypes.c_void_p(address), ctypes.c_size_t(len(area))):
        raise OSError(ctypes.get_errno(), "mlock")
    kept.append(area)
    return {}


def read(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(label.CHUNK):
            pass
    return {}


for line in sys.stdin:
    what, _, argument = line.strip().partition(" ")
    answer = {"load": load, "preload": preload, "lock": lock, "read": read}[what](argument)
    print(json.dumps(answer), flush=True)
for reader in readers:
    reader.wait()
