"""Windows over the steps of a loop."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any, Generic, Iterable, Iterator, Optional, TypeVar

from ._client import client, how_ended
from ._window import NOTHING, Window

T = TypeVar("T")


class Watch(Generic[T]):
    """An iterable with windows over its steps. Other attributes are those of the iterable."""

    def __init__(self, iterable: Iterable[T], *, seconds: float, steps: Optional[int],
                 name: Optional[str]) -> None:
        self._iterable = iterable
        self._seconds = seconds
        self._most = steps
        self._name = name
        self.steps = 0
        """Steps that have ended, of all passes."""
        self.fetch_seconds = 0.0
        """Time in next(), of all passes. Starting the workers of a DataLoader counts."""

    def __len__(self) -> int:
        return len(self._iterable)  # type: ignore[arg-type]  # raises what the iterable raises

    def __getattr__(self, name: str) -> Any:
        if name == "_iterable":  # a copy has none yet
            raise AttributeError(name)
        return getattr(self._iterable, name)

    def __iter__(self) -> Iterator[T]:
        window = self._window()
        first, fetched, began = self.steps, self.fetch_seconds, perf_counter()
        failed = True
        try:
            before = began
            iterator = iter(self._iterable)
            while True:
                try:
                    item = next(iterator)
                except StopIteration:
                    self.fetch_seconds += perf_counter() - before
                    failed = False
                    return
                now = perf_counter()
                self.fetch_seconds += now - before
                # A window ends here and not after the step, so that none is left without a step at the end.
                if self._full(self.steps - first, now - began):
                    self._end(window, first, fetched, False)
                    window = self._window()
                    first, fetched, began = self.steps, self.fetch_seconds, now
                try:
                    yield item
                except GeneratorExit:
                    failed = False  # a break, or an exception in the loop, which cannot be seen here
                    raise
                self.steps += 1
                before = perf_counter()
        finally:
            self._end(window, first, fetched, failed)

    def _full(self, steps: int, seconds: float) -> bool:
        return steps >= self._most if self._most else steps > 0 and seconds >= self._seconds

    def _window(self) -> Window:
        return NOTHING if client.paused() else Window("steps", {"name": self._name}).begin()

    def _end(self, window: Window, first: int, fetched: float, failed: bool) -> None:
        if window is NOTHING:
            return
        ended = how_ended(sys.exc_info()[0])[1] if failed else ""
        window.end(failed, ended=ended, attributes={
            "training.step.first": first,
            "training.step.count": self.steps - first,
            "training.fetch.seconds": "%.6f" % (self.fetch_seconds - fetched),
        })
