"""A bf16 training loop that computes and reads nothing. A line on its standard input says for how long:
`seconds S` or `steps N`; it answers with a line of JSON. Without PyTorch's GPU it is a loop of Python (--fake)."""

import json
import sys
import time

import announce


class Torch:
    """Steps of about 4 ms on an H200: three linear layers, forward, backward and optimiser."""

    def __init__(self):
        import torch

        self.torch = torch
        torch.manual_seed(1)
        width = 4096
        self.model = torch.nn.Sequential(
            *[m for _ in range(3) for m in (torch.nn.Linear(width, width), torch.nn.ReLU())]
        ).to("cuda", torch.bfloat16)
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=1e-4, momentum=0.9)
        self.x = torch.randn(4096, width, device="cuda", dtype=torch.bfloat16)

    def step(self):
        self.optimiser.zero_grad(set_to_none=True)
        self.model(self.x).float().pow(2).mean().backward()
        self.optimiser.step()

    def wait(self):
        self.torch.cuda.synchronize()


class Python:
    def step(self):
        sum(i * i for i in range(20_000))

    def wait(self):
        pass


def steps(work, count):
    """Seconds that so many steps take. The GPU is waited for every 16, as a loop that looks at its loss does."""
    work.wait()
    began = time.perf_counter()
    for i in range(count):
        work.step()
        if i % 16 == 15:
            work.wait()
    work.wait()
    return time.perf_counter() - began


def main():
    made = announce.parser(__doc__)
    made.add_argument("--python", action="store_true", help="without PyTorch")
    args = announce.parse(made)
    work = Python() if args.python else Torch()
    steps(work, 40)
    print(json.dumps({"step_s": steps(work, 100) / 100}), flush=True)
    for line in sys.stdin:
        what, _, amount = line.partition(" ")
        if what == "steps":
            print(json.dumps({"took_s": steps(work, int(amount))}), flush=True)
            continue
        end, done = time.monotonic() + float(amount), 0
        while time.monotonic() < end:
            steps(work, 16)
            done += 16
        print(json.dumps({"steps": done}), flush=True)


if __name__ == "__main__":
    main()
