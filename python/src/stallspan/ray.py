"""Epochs for Ray Train. Ray's own callbacks run in the driver, but the work is done elsewhere: use this in the workers.

    import stallspan.ray

    def train_loop(config):
        for n in stallspan.ray.epochs(range(10)):
            for batch in stallspan.watch(shard.iter_torch_batches()):
                ...
            ray.train.report({"loss": loss})
"""

from __future__ import annotations

from typing import Iterable, Iterator, Optional

from . import N
from . import epochs as _epochs


def epochs(numbers: Iterable[N], *, run: Optional[str] = None) -> Iterator[N]:
    """Yield the numbers, with a window for each in the first worker of each machine."""
    from ray import train  # a trainer's program need not have Ray before it starts one

    if train.get_context().get_local_rank() == 0:
        yield from _epochs(numbers, run=run)
    else:
        yield from numbers
