"""A backend that keeps the metrics which it is sent, by OTLP over HTTP, for as long as it is asked to.

The messages are read by hand: opentelemetry/proto/metrics/v1/metrics.proto gives the fields' numbers."""

import http.server
import struct
import threading


def fields(message):
    """The fields of a protobuf message as (number, value): integers of varints, bytes of all else."""
    at, end = 0, len(message)

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while at < end:
        tag = varint()
        kind = tag & 7
        if kind == 0:
            yield tag >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(kind)
        if size is None:
            size = varint()
        yield tag >> 3, message[at : at + size]
        at += size


def every(message, *path):
    """All that lies below a message on a path of field numbers."""
    for number, value in fields(message):
        if number == path[0]:
            if len(path) == 1:
                yield value
            else:
                yield from every(value, *path[1:])


def text(message, number):
    return next((value.decode(errors="replace") for value in every(message, number)), "")


def attribute(pair):
    value = next(every(pair, 2), b"")
    for number, what in fields(value):
        return text(pair, 1), what.decode(errors="replace") if number == 1 else what
    return text(pair, 1), None


def points(request):
    """The data points of an ExportMetricsServiceRequest: gauges, sums, and histograms with their sum as the value."""
    for metric in every(request, 1, 2, 2):
        for number, data in fields(metric):
            if number not in (5, 7, 9):  # gauge, sum, histogram
                continue
            histogram = number == 9
            for point in every(data, 1):
                found = {
                    "name": text(metric, 1),
                    "unit": text(metric, 3),
                    "attributes": {},
                    "value": None,
                    "time": 0.0,
                    "start": 0.0,
                }
                for n, value in fields(point):
                    if n in (2, 3):
                        found["start" if n == 2 else "time"] = struct.unpack("<Q", value)[0] / 1e9
                    elif histogram and n in (4, 5, 12):
                        key = {4: "count", 5: "value", 12: "max"}[n]
                        found[key] = struct.unpack("<Q" if n == 4 else "<d", value)[0]
                    elif histogram and n != 9:
                        continue
                    elif n in (4, 6):
                        found["value"] = struct.unpack("<d" if n == 4 else "<q", value)[0]
                    elif n == (9 if histogram else 7):
                        key, said = attribute(value)
                        found["attributes"][key] = said
                yield found


class Backend:
    """`with Backend() as backend:` serves at backend.env; backend.points() is what came so far."""

    MOST = 200_000  # points

    def __init__(self):
        self._points, self._lock, self.error = [], threading.Lock(), None
        backend = self

        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = 10  # seconds, of a connection on which nothing comes

            def do_POST(self):
                body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), 16 << 20))
                if self.path == "/v1/metrics":
                    backend.keep(body)
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.env = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self._server.server_port}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_METRIC_EXPORT_INTERVAL": "1000",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    def keep(self, body):
        try:
            new = list(points(body))
        except (IndexError, struct.error, UnicodeError) as error:
            self.error = f"a request that cannot be read: {error}"
            return
        with self._lock:
            self._points += new[: self.MOST - len(self._points)]

    def points(self):
        with self._lock:
            return list(self._points)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
