"""A rank whose peer is on another machine: after each step it sends a byte, or gradients, over TCP and waits for
as many in return.

With --answer, this program is the peer, which takes a while.
"""

import argparse
import os
import socket
import time

import numpy
import truth


def receive(connection, size):
    """Receive so many bytes; False at the end."""
    while size:
        got = len(connection.recv(min(size, 1 << 20)))
        if not got:
            return False
        size -= got
    return True


def answer(args):
    listener = socket.create_server(("127.0.0.1", 0))
    with open(args.port + ".new", "w") as file:
        file.write(str(listener.getsockname()[1]))
    os.rename(args.port + ".new", args.port)
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while receive(connection, args.bytes):
        time.sleep(args.step)
        connection.sendall(bytes(args.bytes))


def train(args):
    while not os.path.exists(args.port):
        time.sleep(0.1)
    with open(args.port) as file:
        connection = socket.create_connection(("127.0.0.1", int(file.read())))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    gpu, rows = truth.Accelerator(), numpy.random.default_rng(1).random((4096, 512))
    for epoch in range(args.epochs):
        with truth.window(epoch, "epoch", epoch=epoch):
            for step in range(args.steps):
                numpy.tanh(rows[step * 8 % 4000 :][:64])
                gpu.run(args.step)
                with truth.span("other", "peer"):
                    connection.sendall(bytes(args.bytes))
                    if not receive(connection, args.bytes):
                        raise RuntimeError("the peer has ended")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", help="the file with the peer's port")
    parser.add_argument("--answer", action="store_true")
    parser.add_argument("--bytes", type=int, default=1, help="of what both send")
    parser.add_argument("--step", type=float, default=0.03)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    (answer if args.answer else train)(args)


if __name__ == "__main__":
    main()
