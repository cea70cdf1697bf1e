"""The package with a real agent: the windows that it reports against the program's own clock."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import unittest
from typing import Any, Dict, List

import stallspan
from stallspan import _client

from .support import PATIENCE, PATIENT, Case, agent, environment, folder, get, needs_program, retry, run, wall

SLACK = 0.005  # seconds: how far the wall clock of a report and ours may differ, as each is read next to another clock


@needs_program
class Agent(Case):
    socket: str

    @classmethod
    def setUpClass(cls) -> None:
        running = agent()
        cls.socket = running.__enter__()
        cls.addClassCleanup(running.__exit__, None, None, None)

    def setUp(self) -> None:
        super().setUp()
        os.environ["STALLSPAN_SOCKET"] = self.socket

    def ended(self) -> List[Dict[str, Any]]:
        """Return the reports of all windows that have ended."""
        ended = get(self.socket, "/v1/windows")["ended"]
        assert isinstance(ended, list)
        return ended

    def test_windows_lie_where_the_program_says(self) -> None:
        for n in range(20):
            retry(lambda: self.check_window(n))

    def test_a_report_says_how_a_window_ended(self) -> None:
        for error, failed, ended in ((OSError, True, "it raised OSError"),
                                     (KeyboardInterrupt, False, "KeyboardInterrupt (^C)")):
            w = stallspan.load("llama-3")
            try:
                with w:
                    raise error
            except error:
                pass
            report = w.report(PATIENCE)
            got = report["unfinished"], report.get("failed", False), report["ended"]
            self.assertEqual(got, (True, failed, ended))
            self.assertIn(ended, report["finding"])

    def test_epochs_of_a_log(self) -> None:
        """What a program logs is read as what it prints: each epoch begins and ends with its lines."""
        program = """if True:
            import logging, sys, time, stallspan
            logging.basicConfig(level="INFO", format="%(asctime)s %(name)s %(message)s",
                                handlers=[stallspan.LogHandler()])
            for n in (1, 2):
                logging.info("Epoch %d/2 begins", n)
                print(time.time())
                for step in range(4):
                    time.sleep(0.2)
                    logging.info("step %d/4 loss 0.%d", step + 1, step)
                print(time.time())
                time.sleep(0.3)
        """
        done = run(sys.executable, "-c", program, env=environment(STALLSPAN_SOCKET=self.socket))
        edges = [float(line) for line in done.stdout.split()]
        end = time.monotonic() + PATIENCE
        while True:
            got = [w for w in self.ended() if w["kind"] == "epoch" and w.get("epoch") in (1, 2)]
            if len(got) == 2 or time.monotonic() > end:
                break
            time.sleep(0.1)
        self.assertEqual([w["epoch"] for w in got], [1, 2])
        for i, w in enumerate(got):
            self.assertAlmostEqual(wall(w["start"]), edges[2 * i], delta=0.1)
            self.assertAlmostEqual(wall(w["end"]), edges[2 * i + 1], delta=0.1)

    def check_window(self, n: int) -> None:
        """Compare the ends of a window with this program's clock."""
        before = time.time()
        w = stallspan.epoch(n).begin()
        self.assertRegex(w.traceparent, "^00-[0-9a-f]{32}-")  # waits until it has begun
        begun = time.time()
        time.sleep(0.02)
        end = time.time()
        w.end()
        report = w.report(PATIENCE)
        over = time.time()
        start, stop = wall(report["start"]), wall(report["end"])
        self.assertTrue(before - SLACK <= start <= begun + SLACK, (before, start, begun))
        self.assertTrue(end - SLACK <= stop <= over + SLACK, (end, stop, over))
        self.assertEqual((report["kind"], report["epoch"], report["scope"]), ("epoch", n, "process"))

    def test_all_kinds(self) -> None:
        with stallspan.load("resnet", path=__file__, attributes={"a": "b"}) as load:
            pass
        with stallspan.checkpoint("last", path=".") as checkpoint:
            pass
        with stallspan.window("tokenize") as custom:
            pass
        self.assertEqual(load.report(PATIENCE)["model"], "resnet")
        self.assertEqual(checkpoint.report(PATIENCE)["kind"], "checkpoint")
        self.assertEqual(custom.report(PATIENCE)["name"], "tokenize")
        self.assertTrue(custom.verdict)
        self.assertTrue(custom.finding.endswith("."))

    def test_watch(self) -> None:
        before = len(self.ended())
        for _ in stallspan.watch(range(10), steps=5, name="agent"):
            pass
        self.client.close()  # waits for the ends
        self.assertEqual([(r["kind"], r["name"]) for r in self.ended()[before:]], [("steps", "agent")] * 2)

    def test_windows_of_many_threads(self) -> None:
        reports: List[Dict[str, Any]] = []

        def work(n: int) -> None:
            for i in range(5):
                with stallspan.epoch(n * 5 + i, run="threads") as w:
                    pass
                reports.append(w.report(PATIENCE))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(r["epoch"] for r in reports), list(range(40)))

    def test_refusals_are_logged(self) -> None:
        with self.assertLogs("stallspan") as logged:
            with stallspan.window("two\nlines"):
                pass
        self.assertIn("line break", logged.output[0])

    def test_an_exit_leaves_nothing_open(self) -> None:
        script = (PATIENT + "import stallspan, sys\n"
                  "w = stallspan.window('left').begin()\n"
                  "with stallspan.window('ended'): pass\n"
                  "sys.exit(3)\n")
        done = run(sys.executable, "-c", script, env=environment(STALLSPAN_SOCKET=self.socket))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, "", ""))
        found = {r["name"]: r.get("unfinished", False) for r in self.ended() if r.get("name") in ("left", "ended")}
        self.assertEqual(found, {"left": True, "ended": False})
        self.assertEqual(get(self.socket, "/v1/windows")["running"], [])

    def test_command(self) -> None:
        done = run(sys.executable, "-m", "stallspan", env=environment(STALLSPAN_SOCKET=self.socket))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("answers at " + self.socket, done.stdout)
        done = run(sys.executable, "-m", "stallspan", env=environment(STALLSPAN_SOCKET=self.socket + "x"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("start stallspan agent", done.stderr)

    def test_parent_of_a_current_span(self) -> None:
        # Stands in for opentelemetry-api, which Debian does not have.
        script = PATIENT + '''
import sys, types
class Context:
    is_valid, trace_id, span_id, trace_flags = True, 0xabc, 0xdef, 1
trace = types.ModuleType("opentelemetry.trace")
trace.get_current_span = lambda: types.SimpleNamespace(get_span_context=Context)
sys.modules["opentelemetry.trace"] = trace
with stallspan.epoch(1) as w:
    print(w.traceparent)
'''
        done = run(sys.executable, "-c", script, env=environment(STALLSPAN_SOCKET=self.socket))
        self.assertTrue(done.stdout.startswith("00-%032x-" % 0xabc), done.stdout + done.stderr)


@needs_program
class Lost(Case):
    def test_an_agent_that_stops_within_a_window(self) -> None:
        with agent() as socket:
            os.environ["STALLSPAN_SOCKET"] = socket
            w = stallspan.epoch(1).begin()
            self.assertTrue(w.traceparent)
        w.end()
        self.assertEqual(w.report(), {})
        self.assertTrue(self.client.paused())

    def test_a_server_of_another_user_is_not_trusted(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        script = '''
import os, socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o666)
os.setuid(65534)
s.listen()  # SO_PEERCRED is that of the call of listen
print("ready", flush=True)
sys.stdin.read()
'''
        with folder() as home:
            given, shared = os.path.join(home, "given"), os.path.join(home, "shared")
            for path, owner, mode in ((home, 0, 0o755), (given, 65534, 0o755), (shared, 0, 0o777),
                                      (os.path.join(shared, "own"), 65534, 0o755)):
                os.makedirs(path, exist_ok=True)
                os.chown(path, owner, -1)
                os.chmod(path, mode)
            for place, trusted in (("given", True), (".", False), ("shared", False), ("shared/own", False)):
                path = os.path.join(home, place, "s.sock")
                with subprocess.Popen([sys.executable, "-c", script, path], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, env=environment()) as process:
                    assert process.stdout is not None
                    process.stdout.readline()
                    try:
                        _client.connect(path).close()
                        self.assertTrue(trusted, place)
                    except PermissionError:
                        self.assertFalse(trusted, place)
                    process.communicate()


if __name__ == "__main__":
    unittest.main()
