"""The connection to the Stallspan of this machine: HTTP over a unix socket, one request for each connection.

A request is sent at once and without waiting: the server reads the devices when it arrives. Its response stays in the
kernel until someone needs it. So there is no thread, and nothing that a fork could break.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import socket
import stat
import struct
import sys
import tempfile
import threading
import time
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Protocol, Set, Tuple, Type

SOCKET_VARIABLE = "STALLSPAN_SOCKET"
SYSTEM_SOCKET = "/run/stallspan/stallspan.sock"

SEND_SECONDS = 0.1  # longest time for a request to enter the kernel's buffer; it takes microseconds
PAUSE_SECONDS = 5.0  # without a call after a failure; doubles with each failure in a row
MAX_PAUSE_SECONDS = 300.0
MAX_RESPONSE = 1 << 20  # bytes
MAX_OPEN = 64  # windows of this process at a time
MAX_UNREAD = 16  # responses that wait to be read, each with a file descriptor
MAX_WARNINGS = 8  # in the life of a process
EXIT_SECONDS = 1.0  # longest wait for the server when the process ends

log = logging.getLogger("stallspan")


class Refused(Exception):
    """The server has refused a request. The text says why, and what to do."""


class Call:
    """A request that was sent, and its response. One thread may use it at a time."""

    __slots__ = ("_connection", "_received")

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._received: List[bytes] = []

    def wait(self, seconds: float) -> Optional[Dict[str, Any]]:
        """Return the response, or None if it is not complete after so many seconds; 0 does not wait.

        Raises Refused, and OSError or ValueError if the server is lost or is no Stallspan. The call is over then.
        """
        end = time.monotonic() + seconds
        try:
            while True:
                self._connection.settimeout(max(end - time.monotonic(), 0.0))
                piece = self._connection.recv(1 << 16)
                if not piece:
                    break
                self._received.append(piece)
                if sum(map(len, self._received)) > MAX_RESPONSE:
                    raise ValueError("its response is too long")
        except (BlockingIOError, socket.timeout):
            return None
        except (OSError, ValueError):
            self.close()
            raise
        self.close()
        return _parse(b"".join(self._received))

    def close(self) -> None:
        """Forget the response."""
        self._connection.close()


def _parse(response: bytes) -> Dict[str, Any]:
    head, _, body = response.partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/"):
        raise ValueError("its response is not HTTP" if response else "it has closed the connection")
    answer = json.loads(body)
    if not isinstance(answer, dict):
        raise ValueError("its response is not a JSON object")
    if not words[1].startswith(b"2"):
        raise Refused(str(answer.get("error", "status " + words[1].decode("ascii", "replace"))))
    return answer


def paths() -> List[str]:
    """Return where a server may listen, as `stallspan` itself looks for it."""
    path = os.environ.get(SOCKET_VARIABLE)
    if path:
        return [path]
    user = os.geteuid()
    if user == 0:
        return [SYSTEM_SOCKET]
    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(folder):
        folder = os.path.join(folder, "stallspan")
    else:
        folder = os.path.join(tempfile.gettempdir(), "stallspan-%d" % user)
    return [os.path.join(folder, "stallspan.sock"), SYSTEM_SOCKET]


def connect(path: str) -> socket.socket:
    """Return a connection to a server that this process may trust. Raises OSError."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(SEND_SECONDS)
        connection.connect(path)
        if not _trusted(connection, path):
            raise PermissionError("neither root nor this user listens on " + path)
    except OSError:
        connection.close()
        raise
    return connection


def _trusted(connection: socket.socket, path: str) -> bool:
    """Report whether the server is root, this user, or the owner of a folder that root or this user gave it.

    The rule is that of Go's package trust: the folders above belong to root or to this user. The one directly above is
    closed to others, and higher ones may be sticky, such as /tmp.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return False  # no server runs there
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", peer)
    own = (0, os.geteuid())
    if user in own:
        return True
    folder = os.path.dirname(os.path.realpath(path))
    above = os.path.dirname(folder)
    if not _closed(folder, (user,)) or not _closed(above, own):
        return False
    while above != os.path.dirname(above):
        above = os.path.dirname(above)
        if not _closed(above, own, sticky=True):
            return False
    return True


def _closed(folder: str, owners: Tuple[int, ...], sticky: bool = False) -> bool:
    info = os.lstat(folder)
    writable = info.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not (sticky and info.st_mode & stat.S_ISVTX)
    return info.st_uid in owners and not writable


def how_ended(kind: Optional[Type[BaseException]]) -> Tuple[bool, str]:
    """Return whether an exception is a failure, and words for it."""
    if kind is None or issubclass(kind, GeneratorExit):
        return False, ""
    if issubclass(kind, KeyboardInterrupt):
        return False, "KeyboardInterrupt (^C)"
    return True, "it raised " + kind.__name__[:100]


class Open(Protocol):
    """A window, as the client sees it."""

    def end(self, failed: bool = False, *, ended: str = "") -> None:
        """End it."""

    def collect(self, seconds: float) -> None:
        """Read its report if that comes within so many seconds."""

    def forget(self) -> None:
        """Close its connection, without a lock: this is the only thread."""


class Client:
    """Sends requests. It is safe for threads, and empty after a fork."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.RLock()  # a signal's handler may end a window, too
        self._resume = 0.0  # on the monotonic clock: no window begins before
        self._pause = PAUSE_SECONDS
        self._open: Set[Open] = set()
        self._ended: Deque[Open] = deque()  # their reports are not read yet
        self._late: Deque[Call] = deque()  # windows that ended before the server named them
        self._warnings = 0

    def after_fork(self) -> None:
        """Forget the windows of the parent process: they are its own."""
        windows, late = self._open.union(self._ended), self._late
        self._reset()
        for window in windows:
            window.forget()
        for call in late:
            call.close()

    def paused(self) -> bool:
        """Report whether the last call failed a moment ago. Calls are no-ops then."""
        return time.monotonic() < self._resume

    def failed(self, error: BaseException) -> None:
        """Note that the server did not answer, and leave it alone for a while."""
        with self._lock:
            self._resume = time.monotonic() + self._pause
            self._pause = min(self._pause * 2, MAX_PAUSE_SECONDS)
        log.debug("Stallspan cannot be reached: %s", error)

    def answered(self) -> None:
        """Note that the server answers."""
        with self._lock:
            self._pause = PAUSE_SECONDS

    def warn(self, text: str, error: BaseException) -> None:
        """Log why a window is lost, a few times in the life of a process."""
        with self._lock:
            self._warnings += 1
            if self._warnings > MAX_WARNINGS:
                return
        log.warning("%s: %s", text, error)

    def send(self, path: str, body: Dict[str, Any]) -> Optional[Call]:
        """Send a POST request without waiting for the response. Returns None if there is no server."""
        text = json.dumps(body).encode()
        head = "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        return self._send((head % (path, len(text))).encode() + text)

    def get(self, path: str) -> Optional[Call]:
        """Send a GET request as send does."""
        return self._send(("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path).encode())

    def _send(self, request: bytes) -> Optional[Call]:
        if not hasattr(socket, "AF_UNIX"):
            self.failed(OSError("this system has no unix sockets"))
            return None
        error = OSError("no socket")
        for path in paths():
            try:
                connection = connect(path)
            except OSError as err:
                error = err
                continue
            try:
                connection.sendall(request)
                return Call(connection)
            except OSError as err:
                connection.close()
                error = err
        self.failed(error)
        return None

    def begin(self, window: Open, body: Dict[str, Any]) -> Optional[Call]:
        """Announce a window that begins now."""
        self._end_late()
        with self._lock:
            full = len(self._open) >= MAX_OPEN
            if not full:
                self._open.add(window)
        if full:
            self.warn("a window is lost", RuntimeError("%d windows of this process are open: end some" % MAX_OPEN))
            return None
        call = None
        try:
            call = self.send("/v1/windows", body)
        finally:
            if call is None:
                with self._lock:
                    self._open.discard(window)
        return call

    def end(self, window: Open, name: str, body: Dict[str, Any]) -> Optional[Call]:
        """Announce that a window ends now. name is its id."""
        call = self.send("/v1/windows/%s/end" % name, body)
        oldest = None
        with self._lock:
            self._open.discard(window)
            if call is not None:
                self._ended.append(window)
                if len(self._ended) > MAX_UNREAD:
                    oldest = self._ended.popleft()
        if oldest is not None:
            oldest.collect(0)
        self._end_late()
        return call

    def lost(self, window: Open, call: Optional[Call]) -> None:
        """Take over a window that ended before the server named it: it is ended as failed as soon as it has a name."""
        dropped = None
        with self._lock:
            self._open.discard(window)
            if call is not None:
                self._late.append(call)
                if len(self._late) > MAX_UNREAD:
                    dropped = self._late.popleft()
        if dropped is not None:
            dropped.close()

    def read(self, window: Open) -> None:
        """Note that the report of a window has been read."""
        with self._lock:
            if window in self._ended:
                self._ended.remove(window)

    def _end_late(self, seconds: float = 0) -> None:
        with self._lock:
            late, self._late = self._late, deque()
        end = time.monotonic() + seconds
        for call in late:
            try:
                answer = call.wait(max(end - time.monotonic(), 0))
                if answer is None:
                    with self._lock:
                        self._late.append(call)
                    continue
                self.answered()
                ended = self.send("/v1/windows/%s/end" % answer.get("id"), {"failed": True})
                if ended is not None:
                    ended.close()
            except (Refused, OSError, ValueError) as err:
                log.debug("a window is lost: %s", err)

    def close(self) -> None:
        """End what is open as failed, and wait a moment for the server to note it: the process ends."""
        end = time.monotonic() + EXIT_SECONDS
        with self._lock:
            running = list(self._open)
        for window in running:
            failed, how = how_ended(getattr(sys, "last_type", None))  # of an exception that ends the program
            window.end(failed, ended=how or "the program ended")
        self._end_late(max(end - time.monotonic(), 0))
        with self._lock:
            ended = list(self._ended)
        for window in ended:
            window.collect(max(end - time.monotonic(), 0))


client = Client()
atexit.register(client.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=client.after_fork)
