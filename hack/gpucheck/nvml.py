"""Asks the driver's library itself (NVML API Reference Guide): `facts`, or `times`, what single calls take.

A program of its own, because a driver that hangs would hang whoever asks it."""

import ctypes
import json
import sys
import time

ROUNDS, SECONDS = 300, 0.7  # of each call, at most


def text(call, *args):
    room = ctypes.create_string_buffer(96)
    return room.value.decode(errors="replace") if call(*args, room, ctypes.c_uint(96)) == 0 else None


def facts(nvml, device):
    found = {
        "driver": text(nvml.nvmlSystemGetDriverVersion),
        "nvml": text(nvml.nvmlSystemGetNVMLVersion),
        "name": text(nvml.nvmlDeviceGetName, device),
        "uuid": text(nvml.nvmlDeviceGetUUID, device),
    }
    if hasattr(nvml, "nvmlSystemGetCudaDriverVersion_v2"):
        version = ctypes.c_int()
        if nvml.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(version)) == 0:
            found["cuda"] = f"{version.value // 1000}.{version.value % 1000 // 10}"
    return found


class FieldValue(ctypes.Structure):  # nvmlFieldValue_t
    _fields_ = [
        ("id", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("at", ctypes.c_longlong),
        ("took", ctypes.c_longlong),
        ("type", ctypes.c_uint),
        ("code", ctypes.c_int),
        ("value", ctypes.c_ulonglong),
    ]


def calls(device):
    """Calls with what they are to be given. Room for the answer is larger than any of them needs."""
    room, since, kind, count = (
        ctypes.create_string_buffer(1 << 16),
        ctypes.c_ulonglong(0),
        ctypes.c_int(),
        ctypes.c_uint(0),
    )
    memory = (ctypes.c_ulonglong * 8)()
    ctypes.cast(memory, ctypes.POINTER(ctypes.c_uint))[0] = 40 | 2 << 24  # nvmlMemory_v2: its size and version
    fields = (FieldValue * 6)(*[FieldValue(id=n) for n in (83, 197, 198, 82, 74, 75)])

    def fill(most):
        count.value = most
        return ctypes.byref(count)

    listed = {
        "nvmlDeviceGetSamples": lambda f: f(device, 1, since, ctypes.byref(kind), fill(1024), room),
        "nvmlDeviceGetUtilizationRates": lambda f: f(device, room),
        "nvmlDeviceGetMemoryInfo_v2": lambda f: f(device, memory),
        "nvmlDeviceGetFieldValues": lambda f: f(device, 6, fields),
        "nvmlDeviceGetTotalEnergyConsumption": lambda f: f(device, room),
        "nvmlDeviceGetPowerUsage": lambda f: f(device, room),
        "nvmlDeviceGetEnforcedPowerLimit": lambda f: f(device, room),
        "nvmlDeviceGetTemperature": lambda f: f(device, 0, room),
        "nvmlDeviceGetCurrPcieLinkWidth": lambda f: f(device, room),
        "nvmlDeviceGetCurrPcieLinkGeneration": lambda f: f(device, room),
        "nvmlDeviceGetPcieReplayCounter": lambda f: f(device, room),
        "nvmlDeviceGetComputeRunningProcesses_v3": lambda f: f(device, fill(256), room),
        "nvmlDeviceGetTotalEccErrors": lambda f: f(device, 0, 0, room),
        "nvmlDeviceGetEncoderUtilization": lambda f: f(device, room, ctypes.byref(kind)),
    }
    for number, name in enumerate(("graphics", "SM", "memory", "video")):
        listed[f"nvmlDeviceGetClockInfo {name}"] = lambda f, n=number: f(device, n, room)
    return listed


def times(nvml, device):
    """Of each call median, 99th percentile and longest in microseconds. What ctypes adds, 1 to 3 us, is in them."""
    found = {}
    for name, call in calls(device).items():
        function = getattr(nvml, name.split()[0], None)
        if function is None:
            found[name] = {"missing": True}
            continue
        took, end, code = [], time.monotonic() + SECONDS, 0
        while len(took) < ROUNDS and time.monotonic() < end:
            before = time.perf_counter_ns()
            code = call(function)
            took.append((time.perf_counter_ns() - before) / 1e3)
            time.sleep(0.001)  # apart, as ours are
        took.sort()
        found[name] = {
            "code": code,
            "calls": len(took),
            "median_us": round(took[len(took) // 2], 1),
            "p99_us": round(took[min(len(took) - 1, len(took) * 99 // 100)], 1),
            "longest_us": round(took[-1], 1),
        }
    return found


def main():
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    code = nvml.nvmlInit_v2()
    if code:
        sys.exit(f"nvmlInit_v2 answers {code}")
    device = ctypes.c_void_p()
    code = nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(0), ctypes.byref(device))
    if code:
        sys.exit(f"nvmlDeviceGetHandleByIndex_v2 answers {code}")
    print(json.dumps(facts(nvml, device) if sys.argv[1] == "facts" else times(nvml, device)))
    nvml.nvmlShutdown()


if __name__ == "__main__":
    main()
