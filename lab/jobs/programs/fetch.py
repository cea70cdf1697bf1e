"""A training whose data are objects behind HTTP. The first epoch is with a slow server, the others with a fast one.

--poll asks the server for a few bytes after each step instead: it is no data. --serve is a server itself: others send
it data (--send).
"""

import argparse
import http.client
import os
import socket
import time
import zlib

import torch
import truth
from torch.utils.data import DataLoader, Dataset


def port_of(path):
    while not os.path.exists(path):
        time.sleep(0.05)
    with open(path) as file:
        return int(file.read())


class Store:
    """Objects of a server, in pieces, over one connection or with one for each request."""

    def __init__(self, args, port):
        self.args, self.port, self.connection = args, port, None

    def get(self, path, headers=None):
        while True:
            if self.connection is None:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            self.connection.request("GET", path, headers=headers or {})
            answer = self.connection.getresponse()
            data = answer.read()
            if not self.args.keep:
                self.connection.close()
                self.connection = None
            if answer.status < 300:
                return data

    def object(self, number):
        pieces = []
        step = self.args.range or self.args.size
        for start in range(0, self.args.size, step):
            with truth.span("fetch") as one:
                piece = self.get(f"/object/{number}", {"Range": f"bytes={start}-{start + step - 1}"})
                one.argument = len(piece)
            pieces.append(piece)
        return b"".join(pieces)


class Objects(Dataset):
    def __init__(self, args, port):
        self.args, self.port, self.store = args, port, None

    def __len__(self):
        return self.args.objects

    def __getitem__(self, index):
        if self.store is None:  # of this process
            self.store = Store(self.args, self.port)
        data = self.store.object(index)
        end = time.perf_counter() + self.args.decode
        while time.perf_counter() < end:
            zlib.crc32(data[:65536])
        return torch.zeros(1)


def train(args):
    port = port_of(args.port)
    gpu = truth.Accelerator() if args.step else None
    loader = DataLoader(Objects(args, port), batch_size=2, num_workers=args.workers,
                        worker_init_fn=truth.name_worker)
    for epoch in range(args.epochs):
        if epoch == 1:
            Store(args, port).get("/fast")
        with truth.window(epoch, "epoch", epoch=epoch):
            for _ in truth.batches(loader, args.workers):
                if gpu:
                    gpu.run(args.step)


def poll(args):
    store, gpu = Store(args, port_of(args.port)), truth.Accelerator()
    for epoch in range(args.epochs):
        with truth.window(epoch, "epoch", epoch=epoch):
            for _ in range(args.objects):
                gpu.run(args.step)
                with truth.span("other", "status"):
                    store.get("/status")


def serve(args):
    """Answers requests that bring data, one after the other."""
    listener = socket.create_server(("127.0.0.1", 0))
    with open(args.port + ".new", "w") as file:
        file.write(str(listener.getsockname()[1]))
    os.rename(args.port + ".new", args.port)
    gpu = truth.Accelerator()
    connection, _ = listener.accept()
    for epoch in range(args.epochs):
        with truth.window(epoch, "epoch", epoch=epoch):
            for _ in range(args.objects):
                with truth.span("other", "request"):
                    missing = args.size
                    while missing:
                        got = len(connection.recv(min(missing, 1 << 20)))
                        if not got:
                            raise RuntimeError("the client has ended")
                        missing -= got
                gpu.run(args.step)
                connection.sendall(b"x")


def send(args):
    connection = socket.create_connection(("127.0.0.1", port_of(args.port)))
    request = os.urandom(args.size)
    try:
        while True:
            time.sleep(args.decode)
            connection.sendall(request)
            if not connection.recv(1):
                return
    except OSError:
        return


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", help="the file with the server's port")
    parser.add_argument("--size", type=int, default=1 << 20, help="bytes of an object")
    parser.add_argument("--range", type=int, default=0, help="bytes of a request")
    parser.add_argument("--objects", type=int, default=60)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--decode", type=float, default=0.01)
    parser.add_argument("--step", type=float, default=0.0, help="seconds of the accelerator, 0 for none")
    parser.add_argument("--keep", type=int, default=1, help="keep the connection")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--poll", action="store_true")
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--send", action="store_true")
    args = parser.parse_args()
    does = train
    for name, other in (("poll", poll), ("serve", serve), ("send", send)):
        if getattr(args, name):
            does = other
    does(args)


if __name__ == "__main__":
    main()
