"""A rank whose peer is on another machine: after each step it sends a byte over TCP and waits for the answer.

With --answer, this program is the peer, which takes a while.
"""

import argparse
import os
import socket
import time

import numpy
import truth


def answer(args):
    listener = socket.create_server(("127.0.0.1", 0))
    with open(args.port + ".new", "w") as file:
        file.write(str(listener.getsockname()[1]))
    os.rename(args.port + ".new", args.port)
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while connection.recv(1):
        time.sleep(args.step)
        connection.sendall(b"x")


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
                    connection.sendall(b"x")
                    if not connection.recv(1):
                        raise RuntimeError("the peer has ended")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", help="the file with the peer's port")
    parser.add_argument("--answer", action="store_true")
    parser.add_argument("--step", type=float, default=0.03)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    (answer if args.answer else train)(args)


if __name__ == "__main__":
    main()
