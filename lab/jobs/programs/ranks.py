"""Two ranks, each with an accelerator. After each step they wait for each other over a socket, as in NCCL."""

import argparse
import multiprocessing
import socket

import numpy
import truth


class Peer:
    """The connection to the other rank: a step ends when both have sent a byte."""

    def __init__(self, connection, rank):
        self.connection, self.rank = connection, rank

    def meet(self):
        self.connection.sendall(b"x")
        start = truth.now()
        if self.connection.recv(1) != b"x":
            raise RuntimeError("the other rank has ended")
        truth.record("wait", start, truth.now(), f"rank{1 - self.rank}")


def rank(number, args, connection):
    truth.name(f"rank{number}")
    peer, gpu = Peer(connection, number), truth.Accelerator(number)
    rows = numpy.load(args.data[number], mmap_mode="r")
    for epoch in range(args.epochs):
        order = numpy.random.default_rng(1).permutation(len(rows))
        peer.meet()
        if number == 0:
            truth.begin(epoch)
            print(f"===== Epoch {epoch} =====", flush=True)
        for first in range(0, len(order) - args.batch + 1, args.batch):
            batch = []
            for i in order[first : first + args.batch]:
                with truth.span("read", rows[i].nbytes):
                    batch.append(numpy.array(rows[i]))
            numpy.tanh(numpy.stack(batch))
            gpu.run(args.step)
            peer.meet()
    if number == 0:
        truth.begin("-")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs=2, help="a .npy file for each rank")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--step", type=float, default=0.03)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    listener = socket.create_server(("127.0.0.1", 0))
    here = socket.create_connection(listener.getsockname())
    there, _ = listener.accept()
    for connection in here, there:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    ranks = [multiprocessing.Process(target=rank, args=(n, args, c)) for n, c in enumerate((here, there))]
    for one in ranks:
        one.start()
    here.close(), there.close()
    for one in ranks:
        one.join()


if __name__ == "__main__":
    main()
