"""Marks epochs, model loads and steps of a training, so that Stallspan reports where their time went.

    with stallspan.epoch(3):
        for batch in stallspan.watch(loader):
            train(batch)

Without a Stallspan on this machine every call is a no-op. No call raises an exception of its own.
"""

from __future__ import annotations

import os
from typing import Iterable, Iterator, Mapping, Optional, Sequence, TypeVar, Union

from ._client import client as _shared
from ._logs import LogHandler
from ._watch import Watch
from ._window import NOTHING as _NOTHING
from ._window import Window

__all__ = ["LogHandler", "Watch", "Window", "checkpoint", "epoch", "epochs", "load", "watch", "window"]
__version__ = "0.1.0.dev0"

T = TypeVar("T")
N = TypeVar("N", bound=int)
PathLike = Union[str, "os.PathLike[str]"]


def epoch(
    number: Optional[int] = None,
    *,
    run: Optional[str] = None,
    path: Optional[PathLike] = None,
    gpus: Optional[Sequence[str]] = None,
    attributes: Optional[Mapping[str, object]] = None,
) -> Window:
    """Return a window for one pass over the data.

    number counts as the program does. Epochs of one run share a baseline. path is the folder of the data. gpus are ids
    as `nvidia-smi -L` lists them; without them, the GPUs on which the program holds memory count.
    """
    if _shared.paused():
        return _NOTHING
    return Window("epoch", {"epoch": number, "run": run}, path, gpus, attributes)


def epochs(numbers: Iterable[N], *, run: Optional[str] = None) -> Iterator[N]:
    """Yield the numbers, with a window for each: for n in stallspan.epochs(range(10)). A break leaves it unfinished."""
    for number in numbers:
        with epoch(number, run=run) as current:
            try:
                yield number
            except GeneratorExit:
                current.end(failed=True, ended="the loop was left before its end")
                raise


def load(
    model: Optional[str] = None,
    *,
    path: Optional[PathLike] = None,
    gpus: Optional[Sequence[str]] = None,
    attributes: Optional[Mapping[str, object]] = None,
) -> Window:
    """Return a window for loading a model. With the path of its files, the report has the share from memory."""
    if _shared.paused():
        return _NOTHING
    return Window("model_load", {"model": model}, path, gpus, attributes)


def checkpoint(
    name: Optional[str] = None,
    *,
    path: Optional[PathLike] = None,
    attributes: Optional[Mapping[str, object]] = None,
) -> Window:
    """Return a window for writing a checkpoint."""
    if _shared.paused():
        return _NOTHING
    return Window("checkpoint", {"name": name}, path, None, attributes)


def window(
    name: str,
    *,
    path: Optional[PathLike] = None,
    gpus: Optional[Sequence[str]] = None,
    attributes: Optional[Mapping[str, object]] = None,
) -> Window:
    """Return a window for anything else, with a name for people."""
    if _shared.paused():
        return _NOTHING
    return Window("custom", {"name": name}, path, gpus, attributes)


def watch(
    iterable: Iterable[T],
    *,
    seconds: float = 30.0,
    steps: Optional[int] = None,
    name: Optional[str] = None,
) -> Watch[T]:
    """Return the iterable with windows over its steps, and count the time that next() takes.

    A step is one next() and the loop's work on the result. A window ends with the first step after seconds, or after
    exactly so many steps. Their kind is steps. Use one Watch in one thread.
    """
    return Watch(iterable, seconds=seconds, steps=steps, name=name)
