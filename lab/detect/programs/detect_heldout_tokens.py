"""Trains a language model on one file of tokens that is mapped once: random windows of it, a fixed number of steps for
each epoch, and several windows for each step of the optimizer. A thread makes the batches ahead. After each epoch, the
loss on the last part of the file may be estimated; the ends of both are right then."""

import argparse
import queue
import random
import threading

import label
import numpy
import truth

WINDOW = 4096  # tokens


def batch(data, chance, low, high, rows):
    made = []
    for _ in range(rows):
        at = chance.randrange(low, high - WINDOW)
        with truth.span("read", 2 * WINDOW):
            made.append(data[at:at + WINDOW].astype(numpy.int64))
    return numpy.stack(made)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--steps", type=int, default=30, help="of the optimizer, in an epoch")
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--estimate", type=int, default=0, help="batches")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--step", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    chance = random.Random(args.seed)
    gpu = label.Gpu()
    data = numpy.memmap(args.data, dtype=numpy.uint16, mode="r")
    cut = len(data) * 9 // 10
    ready = queue.Queue(3)

    def feed(count):
        truth.name("feeder")
        for _ in range(count):
            made = batch(data, chance, 0, cut, args.rows)
            with truth.span("other", "queue"):
                ready.put(made)

    with label.life(negative=True):
        label.pause(1)
        gpu.grow(600 << 20)  # the model and its optimizer
        for number in range(args.epochs):
            with label.epoch(number) as one:
                feeder = threading.Thread(target=feed, args=(args.steps * args.accumulate,))
                feeder.start()
                for _ in range(args.steps):
                    for _ in range(args.accumulate):
                        start = truth.now()
                        ready.get()
                        truth.record("wait", start, truth.now(), "feeder")
                        gpu.run(args.step)
                    gpu.run(args.step / 2)  # the optimizer
                feeder.join()
                if args.estimate:
                    one.ends.append(label.now())
                    for _ in range(args.estimate):
                        batch(data, chance, cut, len(data), args.rows)
                        gpu.run(args.step / 3)
            label.pause(0.2)
        label.pause(1)


if __name__ == "__main__":
    main()
