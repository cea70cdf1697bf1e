"""Windows: intervals that Stallspan reports on."""

from __future__ import annotations

import os
import re
import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Sequence, Type, Union

from ._client import Call, Refused, client, how_ended

if TYPE_CHECKING:
    PathLike = Union[str, os.PathLike[str]]

NAME_SECONDS = 0.25  # longest wait for the server to name a window: it has had the whole window for that
REPORT_SECONDS = 2.0  # longest wait for a report, for those who want to see it

# The environment variables with a process's number among those of its machine, of torchrun and Lightning, SLURM, Open
# MPI and MPICH.
LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
RANKS_VARIABLE = "STALLSPAN_RANKS"

_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def announces() -> bool:
    """Report whether this process announces windows: the first rank of a machine, or with STALLSPAN_RANKS=all each."""
    if os.environ.get(RANKS_VARIABLE) == "all":
        return True
    for name in LOCAL_RANKS:
        rank = os.environ.get(name)
        if rank:
            return rank == "0"
    return True


def traceparent() -> Optional[str]:
    """Return the current span in W3C Trace Context, or the one in the environment, or None.

    A program that has not imported OpenTelemetry has no current span, so this does not import it either.
    """
    trace = sys.modules.get("opentelemetry.trace")
    if trace is not None:
        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            return "00-%032x-%016x-%02x" % (span.trace_id, span.span_id, int(span.trace_flags) & 0xFF)
    inherited = os.environ.get("TRACEPARENT", "")
    return inherited if _TRACEPARENT.fullmatch(inherited) else None


class Window:
    """An interval from begin to end, which a `with` block calls. It can be used once.

    Windows belong to the process that began them: in a child process, end does nothing. They are safe for threads.
    """

    __slots__ = ("_attributes", "_begun", "_end", "_fields", "_gpus", "_kind", "_lock", "_named", "_over", "_path",
                 "_pid", "_report")

    def __init__(
        self,
        kind: str,
        fields: Mapping[str, Optional[Union[str, int]]],
        path: Optional[PathLike] = None,
        gpus: Optional[Sequence[str]] = None,
        attributes: Optional[Mapping[str, object]] = None,
    ) -> None:
        self._kind = kind
        self._fields = fields
        self._path = path
        self._gpus = gpus
        self._attributes = attributes
        self._lock = threading.RLock()  # a signal's handler may end it, too
        self._pid = 0  # of the process that began it; 0 before
        self._over = False
        self._begun: Optional[Call] = None  # until its response is read
        self._named: Dict[str, Any] = {}  # the response to it
        self._end: Optional[Call] = None  # until its response is read
        self._report: Dict[str, Any] = {}

    def begin(self) -> Window:
        """Begin the window now."""
        try:
            with self._lock:
                if self._pid == 0 and not client.paused() and announces():
                    self._begun = client.begin(self, self._body())
                    if self._begun is not None:
                        self._pid = os.getpid()
        except Exception as err:  # whatever it is, training goes on
            client.warn("a window is lost", err)
        return self

    def _body(self) -> Dict[str, Any]:
        body: Dict[str, Any] = {"kind": self._kind}
        for key, value in self._fields.items():
            if value is not None:
                body[key] = int(value) if key == "epoch" else str(value)  # from NumPy or a tensor, too
        if self._path is not None:
            body["path"] = os.path.abspath(os.fspath(self._path))
        if self._gpus:
            body["gpu_ids"] = list(self._gpus)
        if self._attributes:
            body["attributes"] = _texts(self._attributes)
        parent = traceparent()
        if parent is not None:
            body["traceparent"] = parent
        return body

    def end(
        self, failed: bool = False, attributes: Optional[Mapping[str, object]] = None, *, ended: str = ""
    ) -> None:
        """End the window now. A failed one counts as unfinished; ended says how. attributes are added to its span."""
        try:
            self._finish(failed, attributes, ended)
        except Exception as err:
            client.warn("a window is lost", err)

    def _finish(self, failed: bool, attributes: Optional[Mapping[str, object]], ended: str) -> None:
        if self._pid != os.getpid():
            return
        with self._lock:
            if self._over:
                return
            self._over = True
            name = self._name(NAME_SECONDS)
            if name is None:
                client.lost(self, self._begun)
                self._begun = None
                return
            body: Dict[str, Any] = {"failed": True} if failed else {}
            if ended:
                body["ended"] = ended
            if attributes:
                body["attributes"] = _texts(attributes)
            self._end = client.end(self, name, body)

    def _name(self, seconds: float) -> Optional[str]:
        """Return the id of a window that has begun, with the lock held."""
        if self._begun is not None:
            call, answer = self._begun, None
            try:
                answer = call.wait(seconds)
            except Refused as err:
                self._begun = None
                client.warn("a window is lost", err)
            except (OSError, ValueError) as err:
                self._begun = None
                client.failed(err)
            else:
                if answer is None:
                    client.failed(TimeoutError("no response within %s s" % seconds))
                else:
                    self._begun = None
                    self._named = answer
                    client.answered()
        name = self._named.get("id")
        return name if isinstance(name, str) else None

    @property
    def traceparent(self) -> str:
        """The window's own span in W3C Trace Context, for child spans; "" if it is not known."""
        if self._pid == os.getpid():
            with self._lock:
                if not self._over:
                    self._name(NAME_SECONDS)
        text = self._named.get("traceparent")
        return text if isinstance(text, str) else ""

    def report(self, seconds: float = REPORT_SECONDS) -> Dict[str, Any]:
        """Return the report of a window that has ended. It is empty if it does not come within so many seconds."""
        self.collect(seconds)
        return dict(self._report)

    def collect(self, seconds: float) -> None:
        """Read the report if it comes within so many seconds. The response is given up after that."""
        if self._pid != os.getpid() or not self._lock.acquire(timeout=max(seconds, 0)):
            return  # another process's, or another thread reads it
        try:
            call, self._end = self._end, None
            if call is None:
                return
            client.read(self)
            try:
                self._report = call.wait(seconds) or {}
            finally:
                call.close()
        except Refused as err:
            client.warn("a report is lost", err)
        except (OSError, ValueError) as err:
            client.failed(err)
        finally:
            self._lock.release()

    def forget(self) -> None:
        """Close what belongs to the parent process."""
        for call in (self._begun, self._end):
            if call is not None:
                call.close()

    @property
    def verdict(self) -> str:
        """The label of where the time went, such as storage_bound; "" if it is not known."""
        return str(self.report().get("verdict", ""))

    @property
    def finding(self) -> str:
        """The sentence that states the verdict with its evidence; "" if it is not known."""
        return str(self.report().get("finding", ""))

    def __enter__(self) -> Window:
        return self.begin()

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        failed, ended = how_ended(kind)
        self.end(failed, ended=ended)


def _texts(attributes: Mapping[str, object]) -> Dict[str, str]:
    return {str(key): str(value) for key, value in attributes.items()}


class Nothing(Window):
    """What the functions return while there is no server. It does nothing, and one is enough."""

    __slots__ = ()

    def begin(self) -> Window:
        return self

    def end(
        self, failed: bool = False, attributes: Optional[Mapping[str, object]] = None, *, ended: str = ""
    ) -> None:
        pass

    def collect(self, seconds: float) -> None:
        pass

    def __enter__(self) -> Window:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        pass


NOTHING = Nothing("custom", {})
