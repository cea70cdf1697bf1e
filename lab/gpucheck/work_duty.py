"""Keeps the GPU busy for a share of each period, and says for how long it really was: CUDA's events around each kernel.
With --fake it sets the stand-in's busy time instead, which is then the truth."""

import os
import time

import announce

PIECE = 0.05  # seconds, the longest kernel
REST = 0.3  # seconds without any, at either end of a window


class Cuda:
    """Kernels that only pass the time."""

    def __init__(self):
        import torch

        self.torch, self.rate = torch, 1.5e9  # clock cycles a second, corrected as it goes
        for _ in range(20):
            self.work(0.02)

    def work(self, seconds):
        """Runs kernels of about so long, one right after another, and gives the seconds that they took."""
        begin, end = self.torch.cuda.Event(enable_timing=True), self.torch.cuda.Event(enable_timing=True)
        pieces = max(1, round(seconds / PIECE))
        begin.record()
        for _ in range(pieces):
            self.torch.cuda._sleep(max(1, int(self.rate * seconds / pieces)))
        end.record()
        end.synchronize()
        took = begin.elapsed_time(end) / 1e3
        self.rate *= min(2.0, max(0.5, seconds / max(took, 1e-6)))
        return took


class Fake:
    """busy_ns of the stand-in's file (testdata/fakenvml/README.md), which is looked at every 10 ms."""

    def __init__(self, path):
        self.path, self.busy = path, 0.0
        self.write()
        time.sleep(0.5)  # the first value only sets where it begins

    def write(self):
        with open(self.path + ".new", "w") as file:
            file.write(f"period_us 50000\ngpu 0 busy_ns={int(self.busy * 1e9)}\n")
        os.replace(self.path + ".new", self.path)

    def work(self, seconds):
        began = at = time.monotonic()
        while at - began < seconds:
            time.sleep(min(0.005, seconds - (at - began)))
            now = time.monotonic()
            self.busy += now - at
            at = now
            self.write()
        return at - began


def combination(gpu, name, duty, period, seconds, ids):
    """One window. The GPU rests at its beginning and its end, for longer than the driver's samples are apart (1/6 s): one
    that lies across an edge then holds no busy time that could be taken for the neighbour's."""
    busy, kernels = 0.0, 0
    with announce.window(kind="custom", name=name, **ids):
        time.sleep(REST)
        began = time.monotonic()
        while (at := time.monotonic()) - began < seconds:
            busy += gpu.work(duty * period)
            kernels += 1
            time.sleep(max(0.0, at + period - time.monotonic()))
        took = time.monotonic() - began
        time.sleep(REST)
    return {"name": name, "duty": duty, "period_s": period, "busy_s": busy, "took_s": took, "bursts": kernels}


def fitting(args, gone):
    """Seconds of a window's work, so that all end within the remaining limit. Each also rests, and takes
    up to half a second to announce; the report is written within what is kept for it."""
    each = (args.limit - gone - 15) / (len(args.duties) * len(args.periods))
    return max(1.0, min(args.seconds, each - 2 * REST - 0.5))


def numbers(text):
    return [float(word) for word in text.split(",")]


def main():
    made = announce.parser(__doc__)
    made.add_argument("--seconds", type=float, default=5)
    made.add_argument("--duties", type=numbers, default=[10, 25, 50, 75, 90], help="in percent")
    made.add_argument("--periods", type=numbers, default=[20, 100, 500, 2000], help="in milliseconds")
    made.add_argument("--gpu", default="", help="its UUID")
    args = announce.parse(made)
    began = time.monotonic()
    gpu = Fake(args.fake) if args.fake else Cuda()
    # Shorter ones where it took long until PyTorch had begun: all of them in time.
    args.seconds = fitting(args, time.monotonic() - began)
    ids = {"gpu_ids": [args.gpu]} if args.gpu else {}
    time.sleep(1)
    truth = []
    for period in args.periods:
        for duty in args.duties:
            # Whole periods, as many as fit: the shares then equal their names.
            seconds = max(1, int(args.seconds * 1000 / period)) * period / 1000 - period / 2000
            truth.append(combination(gpu, f"{duty:g} % of {period:g} ms", duty / 100, period / 1000, seconds, ids))
            announce.say(args.out, truth)
    time.sleep(1.5)  # the driver reports the last second late


if __name__ == "__main__":
    main()
