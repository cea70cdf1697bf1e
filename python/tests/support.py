"""What the tests share: the real agent, and servers that misbehave as the real one does not."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import types
import unittest
from datetime import datetime
from typing import Any, Callable, Dict, Iterator, List, Optional
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SOURCE = os.path.join(ROOT, "python", "src")
EXAMPLES = os.path.join(ROOT, "examples")
PROGRAM = os.environ.get("STALLSPAN_PROGRAM", os.path.join(ROOT, "build", "stallspan"))
PATIENCE = 60  # seconds for what takes milliseconds, on a busy machine

RANKS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "STALLSPAN_RANKS")

# For programs that are under test: on a busy machine the agent may need longer than a training should wait.
PATIENT = """import stallspan._client, stallspan._window
stallspan._window.NAME_SECONDS = stallspan._client.EXIT_SECONDS = %d
""" % PATIENCE

needs_program = unittest.skipUnless(
    os.access(PROGRAM, os.X_OK), "%s is missing: run make build, or set STALLSPAN_PROGRAM" % PROGRAM)


def has_torch() -> bool:
    """Report whether PyTorch can be imported."""
    return all(importlib.util.find_spec(name) for name in ("torch", "torchvision"))


def environment(**changes: str) -> Dict[str, str]:
    """Return the environment for a program: without what belongs to this machine's own Stallspan."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("STALLSPAN_", "OTEL_")) and name not in RANKS + ("TRACEPARENT",)}
    env["PYTHONPATH"] = SOURCE
    env.update(changes)
    return env


@contextlib.contextmanager
def folder() -> Iterator[str]:
    """Make a folder whose name is short enough for sockets, and remove it."""
    path = tempfile.mkdtemp(prefix="sp")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def agent() -> Iterator[str]:
    """Run a real agent, and give the path of its socket."""
    with folder() as home:
        path = os.path.join(home, "s.sock")
        env = environment(STALLSPAN_SOCKET=path, XDG_STATE_HOME=home)
        process = subprocess.Popen([PROGRAM, "agent"], env=env, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        try:
            said = ""
            for line in process.stderr:  # until it listens
                said += line
                if path in line:
                    break
            else:
                raise AssertionError("the agent has ended: " + said)
            drain = threading.Thread(target=process.stderr.read)
            drain.start()
            yield path
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
            drain.join(PATIENCE)
            process.stderr.close()


def get(path: str, what: str) -> Any:
    """Return what a real agent answers."""
    import http.client

    class Connection(http.client.HTTPConnection):
        def connect(self) -> None:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(PATIENCE)
            self.sock.connect(path)

    connection = Connection("localhost")
    connection.request("GET", what)
    return json.load(connection.getresponse())


def wall(text: str) -> float:
    """Return a time of a report, in seconds since 1970."""
    date, _, rest = text.partition(".")
    digits = rest.rstrip("Z") if rest else "0"
    if not rest:
        date = date.rstrip("Z")
    return datetime.fromisoformat(date + "+00:00").timestamp() + float("0." + digits)


def retry(measure: Callable[[], None], times: int = 4) -> None:
    """Measure again where an assertion about times fails: the kernel may stop a program between two of its clocks."""
    for last in range(1, times + 1):
        try:
            return measure()
        except AssertionError:
            if last == times:
                raise


class Server:
    """A server that answers as a function decides. It records the first bytes of each request."""

    def __init__(self, answer: Callable[[socket.socket, bytes], None], listens: int = 256) -> None:
        self._answer = answer
        self._folder = tempfile.mkdtemp(prefix="sp")
        self.path = os.path.join(self._folder, "s.sock")
        self.requests: List[bytes] = []
        self._arrived = threading.Condition()
        self.release = threading.Event()  # for functions that hang until the end of the test
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(listens)
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
                request = connection.recv(1 << 16)  # here, so that requests are in the order of their connections
            except OSError:
                return
            with self._arrived:
                self.requests.append(request)
                self._arrived.notify_all()
            thread = threading.Thread(target=self._serve, args=(connection, request))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket, request: bytes) -> None:
        with connection, contextlib.suppress(OSError):
            self._answer(connection, request)

    def take(self, count: int) -> List[bytes]:
        """Wait for so many requests, return them, and begin a new list. Clients do not wait for their ends."""
        with self._arrived:
            self._arrived.wait_for(lambda: len(self.requests) >= count, PATIENCE)
            taken, self.requests = self.requests, []
        return taken

    def close(self) -> None:
        """Stop, and wait for all threads."""
        self.release.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(PATIENCE)
        shutil.rmtree(self._folder)


def reply(body: Any, status: str = "200 OK") -> bytes:
    """Return an HTTP response with JSON."""
    text = json.dumps(body).encode()
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (status.encode(), len(text), text)


def body_of(request: bytes) -> Dict[str, Any]:
    """Return the JSON of a request."""
    body = json.loads(request.partition(b"\r\n\r\n")[2])
    assert isinstance(body, dict)
    return body


class Case(unittest.TestCase):
    """A test with a client of its own state, and no variables of the machine."""

    def setUp(self) -> None:
        from stallspan import _client, _window
        from stallspan._client import client

        self.client = client
        self.wait(_window, "NAME_SECONDS", PATIENCE)
        self.wait(_client, "EXIT_SECONDS", PATIENCE)
        saved = dict(os.environ)

        def restore() -> None:
            os.environ.clear()
            os.environ.update(saved)

        self.addCleanup(restore)
        for name in RANKS + ("TRACEPARENT", "STALLSPAN_SOCKET"):
            os.environ.pop(name, None)
        client._reset()
        self.addCleanup(client._reset)
        self.addCleanup(client.close)

    def wait(self, module: types.ModuleType, name: str, seconds: float) -> None:
        """Set the longest wait for a server, until the end of the test."""
        patch = mock.patch.object(module, name, seconds)
        patch.start()
        self.addCleanup(patch.stop)

    def serve(self, answer: Callable[[socket.socket, bytes], None]) -> Server:
        """Run a server until the end of the test, and make it the one of this process."""
        server = Server(answer)
        self.addCleanup(server.close)
        os.environ["STALLSPAN_SOCKET"] = server.path
        return server


def run(*argv: str, env: Optional[Dict[str, str]] = None,
        cwd: Optional[str] = None) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(argv, env=env or environment(), cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True, timeout=4 * PATIENCE)
