"""A training from disk, cold and then cached: its verdicts, and the predicted and the measured speed-up."""

import os
import shutil

import files
from setting import Skip, aim, read_json, windows

AIM = 0.10


def attempt(setting, name, record, limit, keep):
    """One run, with a data set of its own."""
    data = os.path.join(setting.folder, name)
    os.mkdir(data)
    out = os.path.join(setting.folder, name + "-truth.json")
    try:
        argv = setting.program(
            "work_train.py", "--out", out, "--data", data, "--record", record, "--seconds", 5, "--gpu", setting.gpu
        )
        report = setting.watched(name, argv, limit, record=keep)
    finally:
        shutil.rmtree(data, ignore_errors=True)
    epochs = windows(report, "epoch")
    cold, cached = epochs.get(1, {}), epochs.get(2, {})
    found = {
        "calibrated": read_json(out),
        "sample_bytes": record,
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
    # The samples of the first training are small, so that its workers do little but wait for the disk. With the large ones
    # of the second, to copy a batch takes about as long as to read it: what its GPU waits for depends on the machine.
    for name, record, judged in (("training", 4 << 10, True), ("training-large", 32 << 10, False)):
        if part["attempts"] and setting.left() < 50:
            break
        found, report = attempt(setting, name, record, setting.left(), judged)
        part["attempts"].append(found)
        if judged:
            setting.recorded = report
        assess(part, found, f"samples of {record >> 10} KiB: ", judged)


def assess(part, found, what, judged):
    """Compares a training with what is to be found of it."""
    reported = found["calibrated"]
    if reported["warm_s"] > 0.8 * reported["cold_s"]:
        part["why_not"] = "the disk is about as fast as the page cache here: nothing makes the cold epoch wait for it"
    cold, cached = found["cold"].get("verdict"), found["cached"].get("verdict")
    aim(part, what + "verdict of the cold epoch", cold, "storage_bound" if judged else "",
        cold == "storage_bound" if judged else None)
    aim(part, what + "verdict of the cached epoch", cached, "not storage_bound", cached not in (None, "storage_bound"))
    error = found.get("error")
    said = "not reported"
    if error is not None:
        said = f"{found['predicted_speedup']:.2f} for {found['measured_speedup']:.2f} ({100 * error:+.1f} %)"
    aim(
        part,
        what + "speed-up that the cold epoch predicts, for the measured one",
        said,
        f"{100 * AIM:g} %",
        error is not None and abs(error) <= AIM,
    )
