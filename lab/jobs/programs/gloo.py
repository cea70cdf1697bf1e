"""Two ranks, each with an accelerator, that sum their gradients with torch.distributed and gloo after each step."""

import argparse
import multiprocessing
import os

import numpy
import torch
import torch.distributed
import truth


def rank(number, args):
    truth.name(f"rank{number}")
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{args.meet}", rank=number, world_size=2)
    gpu, gradients = truth.Accelerator(number), torch.ones(args.gradients)

    def reduce():
        start = truth.now()
        torch.distributed.all_reduce(gradients)
        truth.record("wait", start, truth.now(), f"rank{1 - number}")
        gradients.div_(2)

    rows = numpy.load(args.data[number], mmap_mode="r")
    for epoch in range(args.epochs):
        order = numpy.random.default_rng(1).permutation(len(rows))
        reduce()
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
            reduce()
    if number == 0:
        truth.begin("-")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs=2, help="a .npy file for each rank")
    parser.add_argument("--meet", required=True, help="a file for the ranks to find each other")
    parser.add_argument("--gradients", type=int, default=20000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--step", type=float, default=0.03)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    ranks = [multiprocessing.Process(target=rank, args=(n, args)) for n in range(2)]
    for one in ranks:
        one.start()
    for one in ranks:
        one.join()


if __name__ == "__main__":
    main()
