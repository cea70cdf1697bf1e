"""A training from disk, cold and then cached: its verdicts, and the predicted and the measured speed-up."""

import os
import shutil

import files
from setting import Skip, aim, read_json, windows

AIM = 0.10


def attempt(setting, name, share, seconds, limit):
    """One run, with a data set of its own."""
    data = os.path.join(setting.folder, name)
    os.mkdir(data)
    out = os.path.join(setting.folder, name + "-truth.json")
    try:
        argv = setting.program(
            "work_train.py", "--out", out, "--data", data, "--share", share, "--seconds", seconds, "--gpu", setting.gpu
        )
        report = setting.watched(name, argv, limit, record=True)
    finally:
        shutil.rmtree(data, ignore_errors=True)
    epochs = windows(report, "epoch")
    cold, cached = epochs.get(1, {}), epochs.get(2, {})
    found = {
        "calibrated": read_json(out),
        "share": share,
        "cold": brief(cold),
        "cached": brief(cached),
        "problems": report.get("problems"),
    }
    if cold.get("duration_s") and cached.get("duration_s"):
        found["measured_speedup"] = cold["duration_s"] / cached["duration_s"]
        found["predicted_speedup"] = cold.get("speedup_bound")
        if found["predicted_speedup"]:
            found["error"] = found["predicted_speedup"] / found["measured_speedup"] - 1
    return found, report


def brief(window):
    """What a report's window says, without what would make the file long."""
    kept = {
        key: window[key]
        for key in (
            "duration_s",
            "gpu",
            "stall",
            "verdict",
            "finding",
            "remedy",
            "speedup_bound",
            "uncertainty_ratio",
            "scope",
            "interrupted",
            "pressure",
            "load",
        )
        if key in window
    }
    kept["disks"] = [
        {key: disk[key] for key in ("name", "read_bytes", "read_await_s", "queue_depth") if key in disk}
        for disk in window.get("disks", [])
    ][:4]
    return kept


def run(setting, part):
    if setting.fake:
        raise Skip("it trains with PyTorch on a GPU; the stand-in computes nothing")
    setting.need_torch()
    if not files.on_disk(setting.folder):
        raise Skip("the data folder lies in memory: name one on a disk with --data")
    part["attempts"] = []
    for name, share, seconds in (("training", 0.4, 7), ("training-2", 0.15, 6)):
        if part["attempts"] and setting.left() < 50:
            break
        found, setting.recorded = attempt(setting, name, share, seconds, setting.left())
        part["attempts"].append(found)
        if found["cold"].get("verdict") == "storage_bound":
            break
    last = part["attempts"][-1]
    reported = last["calibrated"]
    if reported["warm_s"] > 0.8 * reported["cold_s"]:
        part["why_not"] = "the disk is about as fast as the page cache here: nothing makes the cold epoch wait for it"
    cold, cached = last["cold"], last["cached"]
    aim(part, "verdict of the cold epoch", cold.get("verdict"), "storage_bound", cold.get("verdict") == "storage_bound")
    aim(
        part,
        "verdict of the cached epoch",
        cached.get("verdict"),
        "not storage_bound",
        cached.get("verdict") not in (None, "storage_bound"),
    )
    error = last.get("error")
    said = "not reported"
    if error is not None:
        said = f"{last['predicted_speedup']:.2f} for {last['measured_speedup']:.2f} ({100 * error:+.1f} %)"
    aim(
        part,
        "speed-up that the cold epoch predicts, for the measured one",
        said,
        f"{100 * AIM:g} %",
        error is not None and abs(error) <= AIM,
    )
