"""Files that are written, and then forgotten by the page cache, so that they are read from the disk."""

import os
import time

BLOCK = 32 << 20  # bytes


def memory_free():
    """Bytes that programs can still take: MemAvailable of /proc/meminfo."""
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))


def room(folder):
    """Bytes that a data set may have: it has to fit on the disk and, to be read again, in the page cache."""
    status = os.statvfs(folder)
    return min(status.f_bavail * status.f_frsize // 3, memory_free() // 3)


def on_disk(folder):
    """Whether a folder lies on something that reads can be slow from."""
    kind, longest = "", -1
    with open("/proc/self/mountinfo") as lines:
        for line in lines:
            before, _, after = line.partition(" - ")
            point = before.split()[4]
            if os.path.realpath(folder).startswith(point.rstrip("/") + "/") and len(point) >= longest:
                kind, longest = after.split()[0], len(point)
    return kind not in ("tmpfs", "ramfs")


def write(path, size, seconds=1e9, head=b""):
    """Writes a file of about that size, unless it takes longer than so many seconds, and gives its size. No two blocks
    of it are alike, in case something below keeps alike ones once."""
    block, written, end = bytearray(os.urandom(BLOCK)), 0, time.monotonic() + seconds
    with open(path, "wb", buffering=0) as file:
        if head:
            written += file.write(head)
        while written < size and time.monotonic() < end:
            for at in range(0, BLOCK, 4096):
                block[at : at + 8] = (written + at).to_bytes(8, "little")
            written += file.write(memoryview(block)[: size - written])
            os.fsync(file.fileno())  # what is not on the disk cannot be forgotten
    forget(path)
    return written


def forget(path):
    """Drops a file from the page cache: posix_fadvise(2), for which no rights are needed."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)
