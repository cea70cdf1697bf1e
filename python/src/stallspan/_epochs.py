"""The epoch that is open now, for callbacks."""

from __future__ import annotations

from typing import Any, Dict, Optional

from . import epoch
from ._window import Window


class Epochs:
    """Holds the window of one epoch. The next one ends it if the framework did not."""

    def __init__(self, run: Optional[str] = None) -> None:
        self._run = run
        self._window: Optional[Window] = None

    def begin(self, number: int) -> None:
        """Begin an epoch."""
        self.end()
        self._window = epoch(number, run=self._run).begin()

    def end(self, failed: bool = False) -> None:
        """End the open epoch, if there is one."""
        window, self._window = self._window, None
        if window is not None:
            window.end(failed)

    def __getstate__(self) -> Dict[str, Any]:
        return {"_run": self._run, "_window": None}  # a copy or pickle of a callback has no open window
