"""Windows over the steps of a loop, and the time in next()."""

from __future__ import annotations

import copy
import unittest
from typing import Iterator, List
from unittest import mock

import stallspan
from stallspan import _watch

from .support import Case, body_of
from .test_client import good


class Clock:
    """A clock that moves as the test says."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Loader:
    """Items that take a second each to fetch."""

    batch_size = 4

    def __init__(self, clock: Clock, length: int) -> None:
        self._clock = clock
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        for n in range(self._length):
            self._clock.now += 1
            yield n


class Steps(Case):
    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock()
        patch = mock.patch.object(_watch, "perf_counter", self.clock)
        patch.start()
        self.addCleanup(patch.stop)

    def ends(self, requests: List[bytes]) -> List[List[str]]:
        """Return the first step, the steps and the seconds in next() of each window."""
        bodies = [body_of(r) for r in requests if b"/end " in r.split(b"\r\n")[0]]
        return [list(b["attributes"].values()) for b in bodies]

    def test_windows_of_some_steps(self) -> None:
        server = self.serve(good)
        watch = stallspan.watch(Loader(self.clock, 6), steps=3, name="train")
        for _ in watch:
            self.clock.now += 2
        requests = server.take(4)
        self.assertEqual(body_of(requests[0]), {"kind": "steps", "name": "train"})
        # The first window has the fetch that was over when it ended.
        self.assertEqual(sorted(self.ends(requests)), [["0", "3", "4.000000"], ["3", "3", "2.000000"]])
        self.assertEqual((watch.steps, watch.fetch_seconds), (6, 6.0))

    def test_windows_of_some_seconds(self) -> None:
        server = self.serve(good)
        for _ in stallspan.watch(Loader(self.clock, 10), seconds=10):
            self.clock.now += 2
        self.assertEqual(sorted(self.ends(server.take(6))),
                         [["0", "3", "4.000000"], ["3", "4", "4.000000"], ["7", "3", "2.000000"]])

    def test_a_break_is_no_failure_and_an_exception_is(self) -> None:
        server = self.serve(good)
        for n in stallspan.watch(Loader(self.clock, 10)):
            if n == 2:
                break
        self.assertNotIn("failed", [body_of(r) for r in server.take(2)][1])

        def broken() -> Iterator[int]:
            yield 1
            raise ValueError("no more")

        with self.assertRaisesRegex(ValueError, "no more"):
            list(stallspan.watch(broken()))
        self.assertTrue([body_of(r) for r in server.take(2)][1]["failed"])

    def test_it_stands_for_the_loader(self) -> None:
        watch = stallspan.watch(Loader(self.clock, 7))
        self.assertEqual((len(watch), watch.batch_size, copy.copy(watch).batch_size), (7, 4, 4))
        with self.assertRaises(AttributeError):
            watch.sampler
        self.assertEqual(list(watch), list(watch))
        self.assertEqual(list(stallspan.watch(iter([1, 2]))), [1, 2])
        with self.assertRaises(TypeError):
            len(stallspan.watch(iter([])))

    def test_time_is_counted_without_a_server(self) -> None:
        watch = stallspan.watch(Loader(self.clock, 3))
        for _ in watch:
            self.clock.now += 2
        self.assertEqual((watch.steps, watch.fetch_seconds), (3, 3.0))


if __name__ == "__main__":
    unittest.main()
