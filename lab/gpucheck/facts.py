"""What machine this is: GPU, driver, kernel, disk, and what stallspan check says of them."""

import glob
import json
import os
import shutil
import subprocess
import sys

from setting import HERE, Skip, aim, tail

SMI = (
    "name",
    "driver_version",
    "vbios_version",
    "uuid",
    "memory.total",
    "compute_cap",
    "mig.mode.current",
    "pcie.link.gen.max",
    "pcie.link.width.max",
    "power.max_limit",
    "ecc.mode.current",
    "persistence_mode",
)
WHERE = (
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/local/cuda/compat",
    "/usr/lib/wsl/lib",
)
TORCH = (
    "import json, torch; ok = torch.cuda.is_available(); print(json.dumps({'torch': torch.__version__, "
    "'cuda': torch.version.cuda, 'sees_gpu': ok, 'gpu': torch.cuda.get_device_name(0) if ok else ''}))"
)


def find_library(setting):
    """Finds libnvidia-ml.so.1 like the loader, else in the usual folders, and passes the path to later processes."""
    script = "import ctypes; ctypes.CDLL('libnvidia-ml.so.1')"
    if subprocess.run([sys.executable, "-c", script], env=setting.env, timeout=20, capture_output=True).returncode == 0:
        return "by the loader"
    for folder in WHERE:
        if glob.glob(os.path.join(folder, "libnvidia-ml.so.1")):
            setting.add_library_folder(folder)
            return folder
    return ""


def query(setting, fields):
    """What nvidia-smi says of some fields, asked in one call, and those that it does not know, which are left out."""
    fields, unknown = list(fields), []
    while fields:
        argv = [
            "nvidia-smi",
            "-i",
            setting.device(),
            "--query-gpu=" + ",".join(fields),
            "--format=csv,noheader,nounits",
        ]
        out = setting.run(argv, 20, fail=False)
        values = [value.strip() for value in out.strip().splitlines()[0].split(",")] if out.strip() else []
        if len(values) == len(fields):
            return dict(zip(fields, values)), unknown
        wrong = [field for field in fields if f'"{field}"' in out]
        if not wrong:
            raise RuntimeError("nvidia-smi answers: " + tail(out))
        unknown += wrong
        fields = [field for field in fields if field not in wrong]
    return {}, unknown


def disk_of(folder):
    """The file system under a folder, and the block device below, from /proc/self/mountinfo (proc_pid_mountinfo(5))."""
    device = os.stat(folder).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    found = {"device": number, "type": ""}
    with open("/proc/self/mountinfo") as lines:
        for line in lines:
            before, _, after = line.partition(" - ")
            if before.split()[2] == number:
                found["type"], found["source"] = after.split()[:2]
    sys_folder = "/sys/dev/block/" + number
    if os.path.exists(sys_folder):
        found["name"] = os.path.basename(os.path.realpath(sys_folder))
        for name in ("device/model", "../device/model", "queue/rotational", "../queue/rotational"):
            path = os.path.join(sys_folder, name)
            if os.path.exists(path):
                with open(path) as file:
                    found[os.path.basename(name)] = file.read().strip()
    usage = shutil.disk_usage(folder)
    found["total_gib"], found["free_gib"] = round(usage.total / 2**30, 1), round(usage.free / 2**30, 1)
    return found


def memory_gib():
    with open("/proc/meminfo") as lines:
        return round(int(next(lines).split()[1]) / 2**20, 1)


def attempt(part, what, do):
    """Does something that may fail; why it did is noted."""
    try:
        part[what] = do()
    except Exception as error:
        part[what], part.setdefault("not_reported", {})[what] = None, f"{type(error).__name__}: {error}"
    return part[what]


def ask_torch(setting, part):
    """Whether PyTorch sees the GPU. A cold machine reads gigabytes of libraries for that."""
    torch = attempt(part, "torch", lambda: json.loads(setting.run([sys.executable, "-c", TORCH], 90)))
    setting.has_torch = bool(torch and torch["sees_gpu"])
    setting.no_torch = "PyTorch does not see a GPU"
    if torch is None:
        setting.no_torch = "PyTorch did not report whether it sees a GPU: " + part["not_reported"]["torch"]


def run(setting, part):
    attempt(part, "library", lambda: find_library(setting))
    attempt(part, "session", setting.hold)
    smi = {}
    if setting.fake:
        part["nvidia_smi"] = None
    else:
        smi, _ = attempt(part, "nvidia_smi", lambda: query(setting, SMI)) or ({}, [])
        if smi.get("uuid", "").startswith("GPU-"):
            setting.gpu = smi["uuid"]
        ask_torch(setting, part)
    argv = [sys.executable, os.path.join(HERE, "nvml.py"), "facts", setting.device()]
    nvml = attempt(part, "nvml", lambda: json.loads(setting.run(argv, 30))) or {}
    check = (
        attempt(part, "check", lambda: json.loads(setting.run([setting.stallspan, "check", "--json"], 20, fail=False)))
        or {}
    )
    version = attempt(part, "version", lambda: setting.run([setting.stallspan, "--version"], 10).strip())
    disk = attempt(part, "disk", lambda: disk_of(setting.folder)) or {}
    setting.gpu = setting.gpu or nvml.get("uuid") or ""
    kernel = os.uname()
    part["top"] = {
        "gpu": smi.get("name") or nvml.get("name"),
        "driver": smi.get("driver_version") or nvml.get("driver"),
        "nvml": nvml.get("nvml"),
        "cuda": nvml.get("cuda"),
        "torch": (part.get("torch") or {}).get("torch"),
        "kernel": f"{kernel.release} {kernel.machine}",
        "cpus": len(os.sched_getaffinity(0)),
        "memory_gib": memory_gib(),
        "disk": f"{disk.get('name') or disk.get('source', '')} ({disk.get('type', '')})",
        "stallspan": version,
    }
    seen = [f["says"] for f in check.get("findings", []) if f["area"] == "GPU" and f["state"] in ("ok", "partial")]
    aim(part, "stallspan check sees the GPU", seen[0] if seen else "it does not", "yes", bool(seen))
    if not part["top"]["gpu"]:
        raise Skip("there is no NVIDIA GPU here")
