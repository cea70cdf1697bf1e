"""What all parts share: where things are, and the processes that were started, each with an end."""

import glob
import json
import os
import select
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


class Skip(Exception):
    """A part that cannot be run here, and why."""


class TimeUp(Exception):
    """Something that took longer than it may."""


class Setting:
    """Where things are. deadline (on the monotonic clock) is the end of the part that runs."""

    def __init__(self, args, folder, short):
        self.stallspan, self.out, self.root, self.fake = (
            os.path.abspath(args.stallspan),
            os.path.abspath(args.out),
            args.root,
            args.fake,
        )
        self.folder, self.short = folder, short
        self.gpu_file = os.path.join(short, "gpus")  # what the stand-in plays
        self.recording = os.path.join(self.out, "gpu-check.jsonl.gz")
        self.deadline, self.parts, self.has_torch, self.gpu, self.recorded = time.monotonic(), {}, False, "", None
        self.no_torch = "the part facts was not run"  # why has_torch is false
        self.started, self.holder = [], None
        self.env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OTEL_", "STALLSPAN_", "TRACEPARENT"))
        }
        self.env["XDG_STATE_HOME"] = os.path.join(short, "state")  # the user's baselines stay as they are
        self.env.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if not self.env.get("CUDA_VISIBLE_DEVICES"):  # an empty one would hide every GPU
            self.env["CUDA_VISIBLE_DEVICES"] = "0"
        if args.nvml:
            self.add_library_folder(os.path.abspath(args.nvml))
        if self.fake:
            self.env["FAKENVML_FILE"] = self.gpu_file
            self.play("gpu 0 utilization=0")

    def add_library_folder(self, folder):
        rest = self.env.get("LD_LIBRARY_PATH")
        self.env["LD_LIBRARY_PATH"] = folder + (":" + rest if rest else "")

    def play(self, text):
        """Has the stand-in play what text says (testdata/fakenvml/README.md)."""
        with open(self.gpu_file + ".new", "w") as file:
            file.write(text + "\n")
        os.replace(self.gpu_file + ".new", self.gpu_file)

    def device(self):
        """The GPU's UUID, or what CUDA_VISIBLE_DEVICES calls it as long as that is not known."""
        return self.gpu or self.env["CUDA_VISIBLE_DEVICES"].split(",")[0]

    def need_torch(self):
        """Skips a part that computes on the GPU where PyTorch cannot."""
        if not self.fake and not self.has_torch:
            raise Skip(self.no_torch)

    def left(self, most=1e9):
        """Seconds until the part must be done, less two to clean up, and most at most."""
        return max(1.0, min(most, self.deadline - time.monotonic() - 2))

    def start(self, argv, env=None, **pipes):
        """Starts a process in a session of its own; clean_up ends it."""
        pipes.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(argv, env={**self.env, **(env or {})}, start_new_session=True, text=True, **pipes)
        self.started.append(process)
        return process

    def run(self, argv, limit, env=None, fail=True):
        """Runs a process to its end and gives its standard output. One that fails, or takes longer, is an error."""
        limit = self.left(limit)
        process = self.start(argv, env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.end(process)
            raise TimeUp(f"{name_of(argv)} did not end within {limit:.0f} s") from None
        if fail and process.returncode != 0:
            raise RuntimeError(f"{name_of(argv)}: exit code {process.returncode}: {tail(err or out)}")
        return out

    def end(self, process, patience=5):
        """Asks a process to end, and after a while makes it, with everything in its session's group."""
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(process.pid, signal.SIGKILL)  # those that it left, too
        except (ProcessLookupError, PermissionError):
            pass
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            pass  # it hangs in the driver, and nothing can end it
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()
        if process in self.started:
            self.started.remove(process)

    def clean_up(self):
        for process in list(self.started):
            self.end(process, 3)

    def hold(self):
        """Keeps a session with the driver open until let_go. Without one, and without persistence mode, the driver sets
        the GPU up again for every program, which takes seconds."""
        process = self.start(
            [sys.executable, os.path.join(HERE, "nvml.py"), "hold"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        answer = ask(process, "", self.left(60))
        self.started.remove(process)  # it outlives the part
        self.holder = process
        return answer

    def let_go(self):
        if self.holder:
            holder, self.holder = self.holder, None
            self.end(holder, 3)

    def forget_recording(self):
        """Removes what was recorded before: --record would only rename it."""
        for path in glob.glob(glob.escape(self.recording) + "*"):
            os.remove(path)

    def program(self, name, *args):
        """The command line of a program in this folder. It is killed when the part's time is over."""
        return [sys.executable, os.path.join(HERE, name), "--limit", str(int(self.left()) + 1), *map(str, args)]

    def watched(self, name, argv, limit, record=False):
        """Runs argv under stallspan run, and gives its report."""
        report = os.path.join(self.folder, name + ".json")
        flags = ["--record", self.recording] if record else []
        if record:
            self.forget_recording()
        self.run([self.stallspan, "run", "--baseline", "off", "--report", report, *flags, "--", *argv], limit)
        return read_json(report)


def name_of(argv):
    return " ".join(os.path.basename(word)[:48] for word in argv[:8])


def tail(text):
    """The last words of what a program said, for an error of one line."""
    return " | ".join(text.strip().splitlines()[-3:])[-600:]


def read_json(path):
    with open(path) as file:
        return json.load(file)


def ask(process, line, limit):
    """Sends a line to a program, if any, and gives the JSON of the line that it answers."""
    if line:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    ready, _, _ = select.select([process.stdout], [], [], limit)
    if not ready:
        raise TimeUp(f"no answer to '{line or 'start'}' within {limit:.0f} s")
    answer = process.stdout.readline()
    if not answer:
        raise RuntimeError(f"the program ended before it answered '{line or 'start'}', exit code {process.wait(5)}")
    return json.loads(answer)


def aim(part, what, measured, wanted, ok):
    """Records a figure that has an aim. ok None: it is reported, and not judged."""
    part["aims"].append({"what": what, "measured": measured, "aim": wanted, "ok": ok})


def windows(report, key):
    """The windows that a program announced, by what they are called."""
    return {window.get(key): window for window in report["windows"] if window["source"] == "announced"}


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
