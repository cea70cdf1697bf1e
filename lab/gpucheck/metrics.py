"""Every GPU metric that the registry names: is it there, and does it say what nvidia-smi says in the same second?"""

import os
import re
import subprocess
import time

from daemon import agent
from facts import query
from otlp import Backend
from setting import Skip, aim, ask

MIB, MHZ = 2**20, 1e6
CLOCK, DOMAIN = "stallspan.gpu.clock.frequency", "stallspan.gpu.clock.domain"
LINK, LIMIT, ERROR = "stallspan.gpu.pcie.link.", "hw.limit_type", "error.type"

# nvidia-smi's field, ours, attributes that it must have (None: must not), what one of nvidia-smi's is of ours,
# tolerance in nvidia-smi's unit and as a share, what the stand-in is reported and how much of ours one of that is.
FIELDS = [
    ("memory.total", "hw.gpu.memory.limit", {}, MIB, 1, 0, "memory_total", 1),
    ("memory.used", "hw.gpu.memory.usage", {}, MIB, 64, 0.01, "memory_used", 1),
    ("memory.reserved", "stallspan.gpu.memory.reserved", {}, MIB, 2, 0, "memory_reserved", 1),
    ("utilization.gpu", "hw.gpu.utilization", {"hw.gpu.task": "general"}, 0.01, 6, 0, "utilization", 0.01),
    ("utilization.encoder", "hw.gpu.utilization", {"hw.gpu.task": "encoder"}, 0.01, 5, 0, "encoder", 0.01),
    ("utilization.decoder", "hw.gpu.utilization", {"hw.gpu.task": "decoder"}, 0.01, 5, 0, "decoder", 0.01),
    ("utilization.memory", "stallspan.gpu.memory.controller.utilization", {}, 0.01, 10, 0, "controller", 0.01),
    ("temperature.gpu", "hw.temperature", {"hw.sensor_location": "gpu"}, 1, 3, 0, "temperature", 1),
    ("temperature.memory", "hw.temperature", {"hw.sensor_location": "memory"}, 1, 3, 0, "temperature_memory", 1),
    ("power.draw", "hw.power", {}, 1, 10, 0.1, "power", 1),
    ("enforced.power.limit", "stallspan.gpu.power.limit", {}, 1, 1, 0, "power_limit", 1),
    ("clocks.sm", CLOCK, {DOMAIN: "sm"}, MHZ, 60, 0.05, "clock_sm", MHZ),
    ("clocks.mem", CLOCK, {DOMAIN: "memory"}, MHZ, 10, 0, "clock_memory", MHZ),
    ("clocks.gr", CLOCK, {DOMAIN: "graphics"}, MHZ, 60, 0.05, "clock_graphics", MHZ),
    ("clocks.video", CLOCK, {DOMAIN: "video"}, MHZ, 60, 0.05, "clock_video", MHZ),
    ("pcie.link.gen.current", LINK + "generation", {LIMIT: None}, 1, 0, 0, "pcie_generation", 1),
    ("pcie.link.width.current", LINK + "width", {LIMIT: None}, 1, 0, 0, "pcie_width", 1),
    ("pcie.link.gen.max", LINK + "generation", {LIMIT: "max"}, 1, 0, 0, "pcie_generation_max", 1),
    ("pcie.link.width.max", LINK + "width", {LIMIT: "max"}, 1, 0, 0, "pcie_width_max", 1),
    ("fan.speed", "hw.fan.speed_ratio", {}, 0.01, 3, 0, "fan", 0.01),
    ("ecc.errors.corrected.volatile.total", "hw.errors", {ERROR: "corrected"}, 1, 0, 0, "errors_corrected", 1),
    ("ecc.errors.uncorrected.volatile.total", "hw.errors", {ERROR: "uncorrected"}, 1, 0, 0, "errors_uncorrected", 1),
]
ALWAYS = {
    "hw.energy",
    "hw.gpu.memory.utilization",
    "hw.status",
    "stallspan.gpu.busy.time",
    "stallspan.process.gpu.memory.usage",
    "stallspan.gpu.clock.throttle.time",
    "stallspan.nvml.call.duration",
    "stallspan.nvml.sessions",
}  # metrics of any recent GPU
HOPPER = {
    "stallspan.gpu.sm.utilization",
    "stallspan.gpu.sm.occupancy",
    "stallspan.gpu.tensor.utilization",
    "stallspan.gpu.dram.utilization",
    "hw.gpu.io",
}  # additional metrics of Hopper's and later data-centre chips
PLAYED = {
    "utilization": 40,
    "memory_used": 21474836480,
    "memory_total": 85899345920,
    "temperature": 51,
    "power": 310,
    "pcie_width": 8,
    "pcie_generation": 4,
    "pcie_width_max": 16,
    "pcie_generation_max": 5,
    "memory_reserved": 536870912,
    "encoder": 7,
    "decoder": 11,
    "controller": 23,
    "temperature_memory": 58,
    "power_limit": 650,
    "clock_sm": 1700,
    "clock_memory": 2600,
    "clock_graphics": 1710,
    "clock_video": 1500,
    "fan": 35,
    "errors_corrected": 3,
    "errors_uncorrected": 1,
}


def registered(root):
    """The names of the registry's GPU metrics, which are the only lines of their form in it."""
    with open(os.path.join(root, "semconv/registry/gpu.yaml")) as file:
        before_events = file.read().split("\nevents:")[0]
    return re.findall(r"^  - name: (\S+)$", before_events, re.MULTILINE)


def nearest(points, name, attributes, gpu, at):
    """The point of that metric nearest to a moment."""
    best = None
    for point in points:
        has = point["attributes"]
        if (
            point["name"] == name
            and has.get("hw.id", gpu) == gpu
            and all(has.get(key) == value for key, value in attributes.items())
        ):
            if best is None or abs(point["time"] - at) < abs(best["time"] - at):
                best = point
    return best


def number(smi, field):
    """nvidia-smi's value of a field; None if it has no value."""
    try:
        return float(smi[field])
    except (KeyError, ValueError):
        return None


def hold(points, gpu, rounds):
    """A row for each field and the round of the largest difference, in nvidia-smi's unit."""
    rows = []
    for field, name, attributes, scale, absolute, share, key, played in FIELDS:
        worst = {"field": field, "metric": name, **{k: v for k, v in attributes.items() if v}}
        for at, smi in rounds:
            theirs = smi[key] * played / scale if smi.get("played") else number(smi, field)
            point = nearest(points, name, attributes, gpu, at)
            if theirs is None or point is None:
                worst.update(reported=point is not None, wanted=theirs is not None)
                continue
            ours = point["value"] / scale
            off, most = abs(ours - theirs), absolute + share * abs(theirs)
            if off / max(most, 1e-9) >= worst.get("of_tolerance", -1):
                worst.update(
                    ours=round(ours, 3),
                    theirs=round(theirs, 3),
                    tolerance=round(most, 3),
                    of_tolerance=round(off / max(most, 1e-9), 3),
                    apart_s=round(abs(point["time"] - at), 2),
                    reported=True,
                    wanted=True,
                )
        worst["ok"] = (
            None if not worst.get("wanted") else bool(worst.get("reported")) and worst.get("of_tolerance", 9) <= 1.001
        )
        rows.append(worst)
    return rows


def called(point):
    """A name for a series, with the attributes that distinguish it from others of this GPU."""
    same = ("hw.id", "hw.name", "hw.model", "hw.vendor", "hw.driver_version", "hw.type")
    return " ".join([point["name"], *(f"{k}={v}" for k, v in sorted(point["attributes"].items()) if k not in same)])


def load(setting):
    """Has the GPU work, as evenly as it can."""
    if setting.fake:
        play = {**PLAYED, "processes": f"{os.getpid()}:1073741824"}
        setting.play("gpu 0 " + " ".join(f"{key}={value}" for key, value in play.items()))
    if not setting.has_torch:
        return None
    process = setting.start(setting.program("work_matmul.py"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ask(process, "", setting.left(40))
    process.stdin.write(f"seconds {setting.left(26)}\n")
    process.stdin.flush()
    time.sleep(4)  # until clocks and power have settled
    return process


def rounds(setting, part, seconds):
    """What the GPU is said to be, once a second, with the moment in the middle of each call."""
    if setting.fake:
        time.sleep(seconds)
        return [(time.time() - 0.5, {**PLAYED, "played": True})]
    fields = sorted({row[0] for row in FIELDS} | {"uuid"})
    found, unknown = [], []
    for _ in range(int(seconds)):
        began = time.time()
        smi, more = query(setting, fields)
        ended = time.time()
        unknown, fields = unknown + more, [field for field in fields if field not in more]
        if ended - began < 1:  # else nothing says when the values were read
            found.append(((began + ended) / 2, smi))
        time.sleep(max(0.0, 1.0 - (ended - began)))
    part["nvidia_smi_does_not_know"] = unknown
    if not found:
        raise Skip("nvidia-smi takes more than a second to answer")
    part["nvidia_smi"] = found[-1][1]
    return found


def run(setting, part):
    if not setting.gpu:
        raise Skip("the part facts found no NVIDIA GPU")
    with Backend() as backend:
        process = load(setting)
        with agent(setting, backend.env):
            time.sleep(2)
            compared = rounds(setting, part, 5 if setting.fake else 8)
            time.sleep(1.5 if setting.fake else 4)  # the readings of the last second, and of processes
        if process:
            setting.end(process)
        points = backend.points()
        if backend.error:
            part["error"] = backend.error
    names = registered(setting.root)
    reported = {point["name"] for point in points}
    part["registered"], part["reported"], part["absent"] = len(names), sorted(reported & set(names)), sorted(set(names) - reported)
    part["values"] = {called(point): point["value"] for point in points if point["name"] in names}  # the last of each
    part["fields"] = hold(points, setting.gpu, compared[-6:])
    aim(
        part,
        "points of GPU metrics that came",
        sum(p["name"] in names for p in points),
        "some",
        bool(reported & set(names)),
    )
    judge_presence(setting, part, names, reported)
    judged = [row for row in part["fields"] if row["ok"] is not None]
    off = [
        f"{row['metric']} {row.get('ours', 'absent')} for {row['field']} {row.get('theirs', '')}".strip()
        for row in judged
        if not row["ok"]
    ]
    what = "metrics within tolerance of " + (
        "what the stand-in plays" if setting.fake else "nvidia-smi in the same second"
    )
    aim(
        part,
        what,
        f"{len(judged) - len(off)} of {len(judged)}" + ("; off: " + ", ".join(off) if off else ""),
        "all",
        bool(judged) and not off,
    )


def judge_presence(setting, part, names, reported):
    """Lists missing metrics that this chip is known to support."""
    capability = (setting.parts["facts"].get("nvidia_smi") or [{}])[0].get("compute_cap", "")
    hopper = (
        not setting.fake and capability.replace(".", "").isdigit() and float(capability) >= 9 and float(capability) < 12
    )
    ought = ALWAYS | (HOPPER if hopper or setting.fake else set())
    ought |= {row["metric"] for row in part["fields"] if row.get("wanted")}
    missing = sorted((ought & set(names)) - reported)
    part["support_unknown"] = sorted(set(names) - reported - ought)
    aim(
        part,
        "registered metrics that this GPU supports and that are there",
        f"{len(ought & set(names)) - len(missing)} of "
        f"{len(ought & set(names))}" + ("; missing: " + ", ".join(missing) if missing else ""),
        "all",
        not missing,
    )
