"""GPU busy time of windows compared with CUDA events, for kernels of several duty cycles and periods."""

import json
import os
import sys

from facts import attempt
from setting import HERE, aim, median, read_json, windows

AIM, FAKE_AIM = 2.0, 8.0  # points; the stand-in's windows are short, and on a machine that is busy it plays late


def run(setting, part):
    setting.need_torch()
    out = os.path.join(setting.folder, "duty.json")
    flags = ["--out", out, "--gpu", setting.gpu]
    if setting.fake:
        flags += ["--fake", setting.gpu_file, "--seconds", "2.5", "--duties", "25,75", "--periods", "100,500"]
    report = setting.watched("busy", setting.program("work_duty.py", *flags), setting.left())
    found = windows(report, "name")
    part["rows"] = rows = []
    for truth in read_json(out):
        window = found.get(truth["name"]) or {}
        row = {**truth, "window_s": window.get("duration_s"), "found_s": (window.get("gpu") or {}).get("busy_s")}
        if row["found_s"] is not None and row["window_s"]:
            row["truth_percent"] = 100 * truth["busy_s"] / row["window_s"]
            row["found_percent"] = 100 * row["found_s"] / row["window_s"]
            row["error_points"] = row["found_percent"] - row["truth_percent"]
            row["uncertainty_ratio"] = window.get("uncertainty_ratio")
        rows.append(row)
    part["problems"] = report.get("problems")
    argv = [sys.executable, os.path.join(HERE, "nvml.py"), "period", setting.device()]
    buffer = attempt(part, "driver_samples", lambda: json.loads(setting.run(argv, 20))) or {}
    reported = [row for row in rows if "error_points" in row]
    aim(
        part,
        "windows whose GPU busy time was reported",
        f"{len(reported)} of {len(rows)}",
        "all",
        bool(reported) and len(reported) == len(rows),
    )
    if not reported:
        return
    worst = max(reported, key=lambda row: abs(row["error_points"]))
    part["error_median_points"] = median([abs(row["error_points"]) for row in reported])
    part["error_largest_points"] = abs(worst["error_points"])
    part["error_mean_points"] = sum(row["error_points"] for row in reported) / len(reported)
    truth, most = ("what the stand-in played", FAKE_AIM) if setting.fake else ("CUDA's events", AIM)
    aim(
        part,
        f"busy time compared with {truth}, largest error (of {worst['name']})",
        f"{part['error_largest_points']:.2f} points",
        f"{most:g} points",
        part["error_largest_points"] <= most,
    )
    aim(part, "the same, median", f"{part['error_median_points']:.2f} points", "", None)
    if "median_ms" in buffer:
        aim(part, "time between two of the driver's own samples, median", f"{buffer['median_ms']:.1f} ms", "", None)
