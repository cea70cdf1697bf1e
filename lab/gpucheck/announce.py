"""For the programs that are watched: announces windows (docs/api.md), and sees to it that none runs for ever."""

import argparse
import contextlib
import http.client
import json
import os
import signal
import socket


class Stallspan(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(os.environ["STALLSPAN_SOCKET"])


def post(path, fields):
    connection = Stallspan("localhost")
    try:
        connection.request("POST", path, json.dumps(fields))
        answer = connection.getresponse()
        body = json.load(answer)
    finally:
        connection.close()
    if answer.status >= 400:
        raise RuntimeError(body["error"])
    return body


@contextlib.contextmanager
def window(**fields):
    """A window around what stands inside."""
    begun = post("/v1/windows", {"pid": os.getpid(), **fields})
    yield
    post("/v1/windows/" + begun["id"] + "/end", {})


def parser(doc):
    """A parser with the flag that all programs have."""
    made = argparse.ArgumentParser(description=doc)
    made.add_argument("--limit", type=int, required=True, help="seconds after which the program is killed")
    made.add_argument("--out", default="", help="file for what it says of itself, as JSON")
    made.add_argument("--fake", default="", help="file that the stand-in plays; no GPU is used")
    return made


def parse(made):
    args = made.parse_args()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(args.limit)
    return args


def say(path, what):
    with open(path, "w") as file:
        json.dump(what, file)
