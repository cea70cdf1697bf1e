"""The client with no server, and with servers that fail."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import unittest

import stallspan
from stallspan import _client, _window

from .support import Case, body_of, folder, reply

ID = "8f1c2a90d3b7e645"


def good(connection: socket.socket, request: bytes) -> None:
    """Answer as the real server does."""
    if b"/end " in request.split(b"\r\n")[0]:
        connection.sendall(reply({"id": ID, "verdict": "gpu_bound", "finding": "The GPU was busy."}))
    else:
        connection.sendall(reply({"id": ID, "traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"}, "201 Created"))


class NoServer(Case):
    def test_without_a_server_nothing_happens(self) -> None:
        with folder() as home:
            os.environ["STALLSPAN_SOCKET"] = os.path.join(home, "absent")
            with stallspan.epoch(1) as w:
                pass
            self.assertEqual((w.verdict, w.finding, w.traceparent, w.report()), ("", "", "", {}))
            self.assertTrue(self.client.paused())
            self.assertIs(stallspan.epoch(2), _window.NOTHING)
            self.assertEqual(list(stallspan.watch([1, 2])), [1, 2])

    def test_exceptions_of_the_program_pass(self) -> None:
        os.environ["STALLSPAN_SOCKET"] = "/nonexistent/socket"
        for _ in range(2):  # the second one is a no-op
            with self.assertRaises(ZeroDivisionError):
                with stallspan.epoch(1):
                    1 / 0

    def test_an_agent_that_starts_later_is_found(self) -> None:
        os.environ["STALLSPAN_SOCKET"] = "/nonexistent/socket"
        with stallspan.epoch(1):
            pass
        server = self.serve(good)
        self.client._resume = 0.0  # the pause is over
        with stallspan.epoch(2) as w:
            pass
        self.assertEqual(w.verdict, "gpu_bound")
        self.assertEqual(body_of(server.requests[0]), {"kind": "epoch", "epoch": 2})

    def test_pauses_grow_and_are_bounded(self) -> None:
        for _ in range(20):
            self.client.failed(OSError("gone"))
        self.assertEqual(self.client._pause, _client.MAX_PAUSE_SECONDS)
        self.assertLessEqual(self.client._resume, time.monotonic() + _client.MAX_PAUSE_SECONDS)
        self.client.answered()
        self.assertEqual(self.client._pause, _client.PAUSE_SECONDS)

    def test_unusable_paths(self) -> None:
        for path in ("/" + "x" * 200, "/", __file__):
            os.environ["STALLSPAN_SOCKET"] = path
            self.client._reset()
            with stallspan.epoch(1) as w:
                pass
            self.assertEqual(w.verdict, "", path)

    def test_default_paths(self) -> None:
        os.environ["XDG_RUNTIME_DIR"] = "/run/user/7"
        found = _client.paths()
        self.assertEqual(found[-1], "/run/stallspan/stallspan.sock")
        if os.geteuid() != 0:
            self.assertEqual(found[0], "/run/user/7/stallspan/stallspan.sock")


class Requests(Case):
    def test_fields(self) -> None:
        server = self.serve(good)
        with stallspan.load("llama", path="models/llama", gpus=["GPU-1"], attributes={"lr": 0.1}):
            pass
        requests = server.take(2)
        self.assertEqual(body_of(requests[0]), {
            "kind": "model_load", "model": "llama", "path": os.path.abspath("models/llama"), "gpu_ids": ["GPU-1"],
            "attributes": {"lr": "0.1"}})
        self.assertTrue(requests[1].startswith(b"POST /v1/windows/%s/end " % ID.encode()))
        self.assertEqual(body_of(requests[1]), {})

    def test_a_failed_window(self) -> None:
        server = self.serve(good)
        with self.assertRaises(KeyboardInterrupt):
            with stallspan.checkpoint("last"):
                raise KeyboardInterrupt
        self.assertEqual(body_of(server.take(2)[1]), {"ended": "KeyboardInterrupt (^C)"})

    def test_epochs(self) -> None:
        server = self.serve(good)
        for n in stallspan.epochs(range(5), run="r"):
            if n == 1:
                break
        bodies = [body_of(r) for r in server.take(4)]
        self.assertEqual(bodies, [{"kind": "epoch", "epoch": 0, "run": "r"}, {},
                                  {"kind": "epoch", "epoch": 1, "run": "r"},
                                  {"failed": True, "ended": "the loop was left before its end"}])

    def test_end_twice_and_before_begin(self) -> None:
        server = self.serve(good)
        w = stallspan.window("w")
        w.end()
        self.assertEqual(len(server.requests), 0)
        w.begin()
        w.begin()
        w.end()
        w.end()
        self.assertEqual(w.finding, "The GPU was busy.")
        self.assertEqual(w.report(), w.report())
        self.assertEqual(len(server.requests), 2)

    def test_the_window_has_a_span(self) -> None:
        self.serve(good)
        with stallspan.epoch(1) as w:
            self.assertEqual(w.traceparent, "00-" + "a" * 32 + "-" + "b" * 16 + "-01")

    def test_parent_from_the_environment(self) -> None:
        server = self.serve(good)
        parent = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"
        for value in (parent, "nonsense"):
            os.environ["TRACEPARENT"] = value
            with stallspan.epoch(1):
                pass
        bodies = [body_of(r) for r in server.take(4)]
        self.assertEqual([b.get("traceparent") for b in bodies if "kind" in b], [parent, None])

    def test_only_the_first_rank_announces(self) -> None:
        server = self.serve(good)
        for name in _window.LOCAL_RANKS:
            for rank, announced in (("0", 2), ("1", 0)):
                os.environ[name] = rank
                with stallspan.epoch(1):
                    pass
                self.assertEqual(len(server.take(announced)), announced, (name, rank))
            del os.environ[name]
        os.environ.update(LOCAL_RANK="1", STALLSPAN_RANKS="all")
        with stallspan.epoch(1):
            pass
        self.assertEqual(len(server.take(2)), 2)


class BadServers(Case):
    def lose(self, answer: bytes) -> None:
        """Use a server with this answer."""
        self.serve(lambda connection, _: connection.sendall(answer))
        with stallspan.epoch(1) as w:
            pass
        self.assertEqual((w.verdict, w.traceparent), ("", ""), answer[:60])
        self.client.close()

    def test_answers_that_are_none(self) -> None:
        for answer in (b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n[]",
                       b"HTTP/1.1 200 OK\r\n\r\n{\"id\":7}", reply({"id": "x"})[:-1], b"HTTP/1.1", os.urandom(1000),
                       b"x" * (_client.MAX_RESPONSE + 1)):
            with self.subTest(answer[:40]):
                self.client._reset()
                self.lose(answer)

    def test_a_refusal_is_logged_once_for_each_window_and_not_for_ever(self) -> None:
        self.serve(lambda connection, _: connection.sendall(reply({"error": "4096 windows are open"}, "503 Busy")))
        with self.assertLogs("stallspan", logging.WARNING) as logged:
            for _ in range(20):
                with stallspan.epoch(1):
                    pass
        self.assertEqual(len(logged.records), _client.MAX_WARNINGS)
        self.assertIn("4096 windows are open", logged.output[0])
        self.assertFalse(self.client.paused())

    def test_values_that_cannot_be_sent(self) -> None:
        server = self.serve(good)
        with self.assertLogs("stallspan", logging.WARNING):
            with stallspan.epoch("three"):  # type: ignore[arg-type]
                pass
        self.assertEqual(server.requests, [])
        self.assertFalse(self.client._open)

    def test_a_server_that_hangs_costs_one_wait(self) -> None:
        self.wait(_window, "NAME_SECONDS", 0.05)
        server = self.serve(lambda _, __: hang())

        def hang() -> None:
            server.release.wait()

        with stallspan.epoch(1):
            pass
        self.assertTrue(self.client.paused())
        for n in range(100):
            with stallspan.epoch(n):
                pass
        self.assertEqual(len(self.client._late), 1)
        server.release.set()
        self.client.close()

    def test_a_window_that_was_named_late_is_ended(self) -> None:
        named = threading.Event()

        def slow(connection: socket.socket, request: bytes) -> None:
            if b"/end " not in request.split(b"\r\n")[0]:
                named.wait()
            good(connection, request)

        self.wait(_window, "NAME_SECONDS", 0.05)
        server = self.serve(slow)
        with stallspan.epoch(1):
            pass
        self.assertEqual(len(self.client._late), 1)
        named.set()
        self.client.close()  # waits for its name
        self.assertEqual(len(self.client._late), 0)
        self.assertEqual([body_of(r) for r in server.take(2)][1], {"failed": True})

    def test_what_waits_is_bounded(self) -> None:
        self.serve(good)
        done = []
        for n in range(3 * _client.MAX_UNREAD):
            with stallspan.epoch(n) as w:
                pass
            done.append(w)
        self.assertLessEqual(len(self.client._ended), _client.MAX_UNREAD)
        self.assertEqual(done[-1].verdict, "gpu_bound")
        running = [stallspan.window(str(n)).begin() for n in range(_client.MAX_OPEN)]
        with self.assertLogs("stallspan", logging.WARNING) as logged:
            stallspan.window("one too many").begin()
        self.assertIn("end some", logged.output[0])
        for w in running:
            w.end()
        self.assertFalse(self.client._open)

    def test_the_end_of_the_process_ends_windows(self) -> None:
        server = self.serve(good)
        w = stallspan.epoch(1).begin()
        self.client.close()
        self.assertEqual(body_of(server.take(2)[1]), {"ended": "the program ended"})
        self.assertEqual(w.verdict, "gpu_bound")


class Processes(Case):
    def test_a_child_leaves_the_windows_of_its_parent_alone(self) -> None:
        server = self.serve(good)
        over = stallspan.window("over").begin()
        over.end()
        with stallspan.epoch(1) as w:
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    w.end()
                    ok = over.report() == {} and w.traceparent == "" and not self.client._open
                    with stallspan.window("of the child") as own:
                        pass
                    code = 0 if ok and own.verdict else 2
                finally:
                    os._exit(code)
            _, status = os.waitpid(child, 0)
            self.assertEqual(status, 0)
        self.assertEqual(w.verdict, "gpu_bound")
        self.assertEqual(over.verdict, "gpu_bound")
        ends = [r for r in server.requests if b"/end " in r.split(b"\r\n")[0]]
        self.assertEqual(len(ends), 3)

    def test_a_fork_while_other_threads_work(self) -> None:
        self.serve(good)
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                with stallspan.window("w"):
                    pass

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(20):
                child = os.fork()
                if child == 0:
                    with stallspan.window("child"):
                        pass
                    os._exit(0)
                _, status = os.waitpid(child, 0)
                self.assertEqual(status, 0)
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def test_threads_share_a_client(self) -> None:
        server = self.serve(good)
        verdicts = []

        def work() -> None:
            for n in range(20):
                with stallspan.epoch(n) as w:
                    pass
                verdicts.append(w.verdict)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(verdicts), 160)
        begun = sum(b"/end " not in r.split(b"\r\n")[0] for r in server.requests)
        self.assertEqual(begun, len(server.requests) - begun)
        self.assertFalse(self.client._open)


if __name__ == "__main__":
    unittest.main()
