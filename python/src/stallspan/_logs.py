"""What a program logs, for the reader of `stallspan run`: it finds the epochs and loads in it."""

from __future__ import annotations

import logging
import os
import time
from typing import List, Tuple

from ._client import client as _shared
from ._window import announces as _announces

SECONDS = 0.5  # between two requests
MAX_LINES = 200  # of a request
MAX_TEXT = 8192  # characters of a line: the reader reads no more


class LogHandler(logging.Handler):
    """Sends what a program logs to Stallspan, which finds epochs and model loads in it.

    Its formatter may be any. At most each half second it sends what has come since, with the time of each line; what
    came last is sent at the next line, by flush(), or when the program ends. Nothing is sent for records of a child
    process that this one forked.
    """

    def __init__(self, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self._lines: List[Tuple[int, str]] = []
        self._sent = 0.0  # on the monotonic clock
        self._process = os.getpid()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep or send a record."""
        if record.name == "stallspan" or os.getpid() != self._process or not _announces():
            return
        try:
            self._lines.append((int(record.created * 1e9), self.format(record)[:MAX_TEXT]))
        except Exception:
            self.handleError(record)
            return
        if len(self._lines) >= MAX_LINES or time.monotonic() - self._sent >= SECONDS:
            self.flush()

    def flush(self) -> None:
        """Send what is kept."""
        self.acquire()
        try:
            lines, self._lines = self._lines, []
        finally:
            self.release()
        if not lines or os.getpid() != self._process or _shared.paused():
            return
        self._sent = time.monotonic()
        records = [{"timeUnixNano": str(at), "body": {"stringValue": text}} for at, text in lines]
        call = _shared.send("/v1/logs", {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]})
        if call is not None:
            call.close()

    def close(self) -> None:
        """Send what is kept, and end."""
        self.flush()
        super().close()
