"""Starts `stallspan agent` on a socket of its own, and waits until it answers there."""

import contextlib
import os
import socket
import subprocess
import time

from setting import TimeUp, tail


@contextlib.contextmanager
def agent(setting, env=None):
    """The agent while what stands inside runs. Its words are kept for the error, should it end."""
    path = os.path.join(setting.short, "agent.sock")
    words = os.path.join(setting.short, "agent.txt")
    with open(words, "w") as file:
        process = setting.start(
            [setting.stallspan, "agent"],
            {"STALLSPAN_SOCKET": path, **(env or {})},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        end = time.monotonic() + setting.left(15)
        while not answers(path):
            if process.poll() is not None or time.monotonic() > end:
                with open(words) as file:
                    said = tail(file.read())
                raise TimeUp("stallspan agent does not answer on its socket: " + said)
            time.sleep(0.05)
        yield process
    finally:
        setting.end(process)


def answers(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(2)
        try:
            connection.connect(path)
            connection.sendall(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return connection.recv(64).startswith(b"HTTP/1.1 200")
        except OSError:  # also one that took too long: the machine is busy
            return False
