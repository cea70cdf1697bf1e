"""A model load, cold and from memory: its verdict, and how much of the file came from memory."""

import os

import files
from setting import Skip, aim, read_json, windows
from training import brief

MOST = 8 << 30  # bytes
SLOWER = 1.5  # how much longer a cold load takes where the disk is what it waits for, at least


def run(setting, part):
    setting.need_torch()
    if not files.on_disk(setting.folder):
        raise Skip("the data folder lies in memory: name one on a disk with --data")
    path, out = os.path.join(setting.folder, "model.safetensors"), os.path.join(setting.folder, "load-truth.json")
    size = 192 << 20 if setting.fake else min(MOST, files.room(setting.folder))
    if setting.fake:
        setting.play("gpu 0 utilization=0")
    flags = ["--path", path, "--size", size, "--out", out, "--gpu", setting.gpu] + (
        ["--fake", setting.gpu_file] if setting.fake else []
    )
    try:
        # The stand-in has no training that could be the recording, so this is.
        report = setting.watched("load", setting.program("work_load.py", *flags), setting.left(), record=setting.fake)
    finally:
        if os.path.exists(path):
            os.remove(path)
    if setting.fake:
        setting.recorded = report
    part["truth"] = truth = read_json(out)
    found = windows(report, "model")
    cold, warm = found.get("cold", {}), found.get("warm", {})
    part["cold"], part["warm"], part["problems"] = brief(cold), brief(warm), report.get("problems")
    gib, took = truth["size"] / 2**30, truth["took_s"]
    aim(
        part,
        "size of the model in the report",
        (cold.get("load") or {}).get("size"),
        truth["size"],
        (cold.get("load") or {}).get("size") == truth["size"],
    )
    part["reader"], slow = truth["reader"], took["cold"] >= SLOWER * took["warm"]
    if not slow:
        part["why_not"] = (
            f"the disk is about as fast as the page cache here: cold {took['cold']:.2f} s, warm {took['warm']:.2f} s"
        )
    aim(
        part,
        f"{gib:.1f} GiB loaded cold by {part['reader']} in",
        f"{took['cold']:.2f} s, {cold.get('verdict')}" + ("" if slow else "; about as fast as from memory"),
        "storage_bound",
        None if setting.fake or not slow else cold.get("verdict") == "storage_bound",
    )
    aim(
        part,
        f"{gib:.1f} GiB loaded from memory in",
        f"{took['warm']:.2f} s, {warm.get('verdict')}",
        "not storage_bound",
        None if setting.fake else warm.get("verdict") not in (None, "storage_bound"),
    )
    for name, window, ok in (("cold", cold, lambda r: r <= 0.1), ("warm", warm, lambda r: r >= 0.9)):
        ratio = (window.get("load") or {}).get("page_cache_hit_ratio")
        aim(
            part,
            f"share of the file that came from memory, {name}",
            "not reported" if ratio is None else f"{ratio:.2f}",
            "0.1 at most" if name == "cold" else "0.9 at least",
            ratio is not None and ok(ratio),
        )
