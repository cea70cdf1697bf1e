"""A real PyTorch training under `stallspan run` and next to an agent. The windows are compared with its own clock."""

from __future__ import annotations

import json
import os
import sys
import unittest
from typing import Any, Dict, List

from .support import (
    EXAMPLES, PATIENT, PROGRAM, agent, environment, folder, get, has_torch, needs_program, retry, run, wall)

SLACK = 0.005  # seconds, as in test_agent

# The example's training, which writes when each epoch began and ended by its own clock, before and after the call.
# Waiting for traceparent is waiting until the window has begun, and for the report until it has ended.
TRAINING = PATIENT + '''
import json, os, sys, time
sys.path.insert(0, sys.argv[1])
import stallspan, torch, train

torch.set_num_threads(1)
train.make_images(sys.argv[2], 64, 64)
model = train.make_model()
optimizer = torch.optim.Adam(model.parameters())
loader = torch.utils.data.DataLoader(train.Images(sys.argv[2]), batch_size=4, num_workers=int(sys.argv[3]))
times = []
for n in (1, 2):
    print("Epoch %d/2" % n, flush=True)
    before = time.time()
    with stallspan.epoch(n, path=sys.argv[2]) as epoch:
        assert epoch.traceparent
        begun = time.time()
        batches = stallspan.watch(loader, steps=8)
        train.train(model, batches, optimizer, "cpu")
        end = time.time()
    assert epoch.report(60)["epoch"] == n
    times.append([before, begun, end, time.time(), batches.steps, batches.fetch_seconds])
with open(sys.argv[4], "w") as file:
    json.dump([os.getpid(), times], file)
'''


@needs_program
@unittest.skipUnless(has_torch(), "PyTorch and torchvision are missing: install python3-torch and python3-torchvision")
class Training(unittest.TestCase):
    def train(self, home: str, workers: int, prefix: List[str], **variables: str) -> Any:
        """Run the training in a folder, and return its process and its times."""
        log = os.path.join(home, "times.json")
        done = run(*prefix, sys.executable, "-c", TRAINING, os.path.join(EXAMPLES, "pytorch"),
                   os.path.join(home, "images"), str(workers), log, env=environment(**variables))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(log) as file:
            return json.load(file)

    def check(self, windows: List[Dict[str, Any]], times: List[List[float]]) -> None:
        """Compare the epochs and the windows of steps with the program's times."""
        epochs = [w for w in windows if w["kind"] == "epoch"]
        steps = [w for w in windows if w["kind"] == "steps"]
        self.assertEqual([w["epoch"] for w in epochs], [1, 2])
        self.assertEqual(len(steps), 4)
        for w, (before, begun, end, over, done, fetched) in zip(epochs, times):
            start, stop = wall(w["start"]), wall(w["end"])
            self.assertTrue(before - SLACK <= start <= begun + SLACK, (before, start, begun))
            self.assertTrue(end - SLACK <= stop <= over + SLACK, (end, stop, over))
            self.assertEqual((w["source"], w.get("unfinished", False)), ("announced", False))
            self.assertEqual(done, 16)
            self.assertTrue(0 < fetched <= end - begun, (fetched, end - begun))
            self.assertIn("stall", w)

    def test_under_run(self) -> None:
        for workers in (0, 2):
            with self.subTest(workers=workers):
                retry(lambda: self.under_run(workers))

    def under_run(self, workers: int) -> None:
        """Train under `stallspan run`."""
        with folder() as home:
            report = os.path.join(home, "report.json")
            _, times = self.train(home, workers, [PROGRAM, "run", "--baseline", "off", "--report", report, "--"])
            with open(report) as file:
                self.check(json.load(file)["windows"], times)

    def test_next_to_an_agent(self) -> None:
        retry(self.next_to_an_agent)

    def next_to_an_agent(self) -> None:
        """Train next to an agent."""
        with folder() as home, agent() as socket:
            _, times = self.train(home, 2, [], STALLSPAN_SOCKET=socket)
            windows = get(socket, "/v1/windows")
            self.assertEqual(windows["running"], [])
            self.check(windows["ended"], times)
            self.assertEqual({w["scope"] for w in windows["ended"]}, {"process"})

    def test_the_example_alone_and_by_rank(self) -> None:
        with folder() as home, agent() as socket:
            example = os.path.join(EXAMPLES, "pytorch", "train.py")
            for variables, announced in (({"STALLSPAN_SOCKET": socket + "x"}, 0),
                                         ({"STALLSPAN_SOCKET": socket, "LOCAL_RANK": "1"}, 0),
                                         ({"STALLSPAN_SOCKET": socket, "LOCAL_RANK": "0"}, 3)):
                done = run(sys.executable, example, "--data", home, "--images", "16", "--size", "64", "--epochs", "1",
                           "--workers", "0", env=environment(**variables))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("epoch 1: loss", done.stdout)
                self.assertEqual(len(get(socket, "/v1/windows")["ended"]), announced, done.stdout)


if __name__ == "__main__":
    unittest.main()
