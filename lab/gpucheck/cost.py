"""What watching costs: time inside the driver, and how much slower a training loop gets."""

import json
import os
import random
import re
import statistics
import subprocess
import sys
import time

from daemon import agent
from otlp import Backend
from setting import HERE, aim, ask, median

SHARE, SLOWDOWN = 0.1, 0.2  # percent
PREFIX = "stallspan.nvml."
TIMEOUT = 10  # NVML_ERROR_TIMEOUT
SESSION = re.compile("Init|Shutdown")


def driver_use(points):
    """By function: calls, seconds and the longest, between first and last point of each; and the share of wall time."""
    use, share, series = {}, 0.0, {}
    for point in points:
        if point["name"] == PREFIX + "call.duration":
            series.setdefault(point["attributes"].get(PREFIX + "function", ""), []).append(point)
    for function, ours in series.items():
        first, last = min(ours, key=lambda p: p["time"]), max(ours, key=lambda p: p["time"])
        entry = use[function] = {"longest_s": last["max"]}  # since the agent began, the first calls included
        if (span := last["time"] - first["time"]) > 0:
            entry["calls"], entry["seconds"] = last["count"] - first["count"], last["value"] - first["value"]
            entry["of_s"] = span
            share += entry["seconds"] / span
    for entry in use.values():
        if entry.get("calls"):
            entry["mean_us"] = round(1e6 * entry.get("seconds", 0) / entry["calls"], 2)
    return use, 100 * share


def inside_driver(setting, part, process):
    """Share of wall time in the driver, at the default cadence, while the GPU works."""
    seconds = 4 if setting.fake else 20
    process.stdin.write(f"seconds {seconds + 3}\n")
    process.stdin.flush()
    with Backend() as backend:
        with agent(setting, backend.env):
            time.sleep(seconds + 1)
        points = backend.points()
    ask(process, "", setting.left(30))
    part["calls"], part["driver_share_percent"] = driver_use(points)
    reported = bool(part["calls"])
    # To begin and end a session takes longer, and is done once.
    longest = max(
        ((entry.get("longest_s", 0), name) for name, entry in part["calls"].items() if not SESSION.search(name)),
        default=(0, ""),
    )
    aim(
        part,
        "share of wall time inside the driver's library",
        f"{part['driver_share_percent']:.4f} %" if reported else "not reported",
        f"{SHARE:g} %",
        None if setting.fake else reported and part["driver_share_percent"] <= SHARE,
    )
    if reported:
        aim(
            part,
            f"longest call ({longest[1]}), but to begin and end a session",
            f"{1e3 * longest[0]:.2f} ms",
            "20 ms",
            None if setting.fake else longest[0] <= 0.02,
        )


def single_calls(setting, part, process):
    """Median and 99th percentile of single calls, while the GPU works."""
    seconds = 2 if setting.fake else 12
    process.stdin.write(f"seconds {seconds + 2}\n")
    process.stdin.flush()
    argv = [sys.executable, os.path.join(HERE, "nvml.py"), "times", setting.device(), str(seconds)]
    part["single_calls"] = json.loads(setting.run(argv, 40))
    ask(process, "", setting.left(30))
    # To look for an event and find none is well, too.
    good = {
        name: call
        for name, call in part["single_calls"].items()
        if call.get("calls") and (call["code"] == 0 or (name.startswith("nvmlEventSetWait") and call["code"] == TIMEOUT))
    }
    for what, key in (("median", "median_us"), ("99th percentile", "p99_us")):
        name = max(good, key=lambda n: good[n][key], default="")
        if name:
            aim(part, f"slowest call by {what}, asked from Python ({name})", f"{good[name][key]:g} us", "", None)
    regular = {name for name, entry in part["calls"].items() if entry.get("calls") and not SESSION.search(name)}
    part["calls_not_timed"] = sorted(regular - {name.split()[0] for name in good})
    aim(
        part,
        "functions that the agent calls repeatedly, with known median and 99th percentile",
        f"{len(regular) - len(part['calls_not_timed'])} of {len(regular)}"
        + ("; not: " + ", ".join(part["calls_not_timed"]) if part["calls_not_timed"] else ""),
        "all",
        bool(regular) and not part["calls_not_timed"],
    )


def pairs(setting, part, process, step):
    """The loop without and with the agent, as ABBA, and the median of the pairs' differences."""
    length = 0.2 if setting.fake else 2.0
    count = max(1, round(length / step))
    slowdowns, end = [], time.monotonic() + (0 if setting.fake else setting.left(75))

    def measure():
        return ask(process, f"steps {count}", 20)["took_s"]

    with Backend() as backend:
        env = {**backend.env, "OTEL_METRIC_EXPORT_INTERVAL": "10000"}  # as it is by default
        while not slowdowns or time.monotonic() + 4 * length + 6 < end:
            first = measure()
            with agent(setting, env):
                time.sleep(1)  # what is asked once at the start is no part of it
                with_it = [measure(), measure()]
            slowdowns += [with_it[0] / first - 1, with_it[1] / measure() - 1]
    part["slowdowns_percent"] = [round(100 * s, 3) for s in slowdowns]
    part["slowdown_percent"] = 100 * median(slowdowns)
    low, high = interval(slowdowns)
    part["slowdown_interval_percent"] = [100 * low, 100 * high]
    aim(
        part,
        f"slowdown of a bf16 training loop, median of {len(slowdowns)} pairs of {length:g} s (95 % interval)",
        f"{100 * median(slowdowns):+.2f} % ({100 * low:+.2f} to {100 * high:+.2f} %)",
        f"{SLOWDOWN:g} %",
        None if setting.fake else 100 * median(slowdowns) <= SLOWDOWN,
    )


def interval(values):
    """The 95 % confidence interval of the median, by resampling."""
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(values, k=len(values))) for _ in range(2000))
    return medians[50], medians[1949]


def run(setting, part):
    setting.need_torch()
    flags = ["--python"] if setting.fake else []
    process = setting.start(setting.program("work_matmul.py", *flags), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if setting.fake:
        setting.play("gpu 0 utilization=60")
    step = ask(process, "", setting.left(45))["step_s"]
    part["step_s"] = step
    inside_driver(setting, part, process)
    single_calls(setting, part, process)
    pairs(setting, part, process, step)
