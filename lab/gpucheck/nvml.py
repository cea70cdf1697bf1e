"""Asks the driver's library itself (NVML API Reference Guide): nvml.py WHAT [GPU [SECONDS]].

    facts   what the GPU is
    times   what single calls take, over so many seconds
    fields  what each field value takes that the agent asks for, alone and all in one call, over so many seconds
    period  how far apart the driver's samples of utilisation are
    delay   how old a sample is when the driver gives it, and by which clock it is stamped, over so many seconds
    hold    keeps a session with every GPU open until the standard input ends

GPU is an index or a UUID. A separate program, because a hanging driver hangs its caller."""

import ctypes
import json
import statistics
import sys
import time

ROUNDS, SECONDS = 300, 12.0  # of all calls one after another, at most
PAUSE = 0.0005  # seconds between two calls, which others use the driver in
GPM_APART = 0.12  # seconds between two samples of GPM: nvml.h wants 0.1 at least
XID = 8  # nvmlEventTypeXidCriticalError
ALL_LINKS = 0xFFFFFFFF

# The fields and the GPM metrics that the agent asks for (internal/source/gpu/fields.go, gpm.go).
FIELDS = (83, 185, 198, 197, 139, 138, 204, 202, 82, 74, 269, 75, 270, 271, 76, 77, 79)
LINKS = (139, 138, 204, 202)  # of these all links together
METRICS = (2, 3, 5, 10, 21, 20, 60, 61)


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


class GpmMetric(ctypes.Structure):  # nvmlGpmMetric_t
    _fields_ = [
        ("id", ctypes.c_uint),
        ("code", ctypes.c_int),
        ("value", ctypes.c_double),
        ("names", ctypes.c_void_p * 3),
    ]


class GpmMetrics(ctypes.Structure):  # nvmlGpmMetricsGet_t, as long as the newest: the driver looks at count of them
    _fields_ = [
        ("version", ctypes.c_uint),
        ("count", ctypes.c_uint),
        ("first", ctypes.c_void_p),
        ("second", ctypes.c_void_p),
        ("metrics", GpmMetric * 477),
    ]


class Sample(ctypes.Structure):  # nvmlSample_t
    _fields_ = [("at", ctypes.c_ulonglong), ("value", ctypes.c_ulonglong)]


def text(call, *args):
    room = ctypes.create_string_buffer(96)
    return room.value.decode(errors="replace") if call(*args, room, ctypes.c_uint(96)) == 0 else None


def find(nvml, wanted):
    """The GPU of that index or UUID (its beginning is enough); the first for an empty one."""
    count, device, codes = ctypes.c_uint(), ctypes.c_void_p(), []
    codes.append(nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)))
    for i in range(count.value):
        codes.append(nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(i), ctypes.byref(device)))
        if codes[-1] == 0 and (wanted == str(i) or (text(nvml.nvmlDeviceGetUUID, device) or "").startswith(wanted)):
            return device
    sys.exit(f"of {count.value} GPUs none is '{wanted}' (NVML answers {codes})")


def open_all(nvml):
    """Sets up every GPU: to begin a session does not do that, to ask for a handle does. Gives how many there are."""
    count, device = ctypes.c_uint(), ctypes.c_void_p()
    nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    codes = [nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(i), ctypes.byref(device)) for i in range(count.value)]
    return codes.count(0)


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


def period(nvml, device):
    """Milliseconds between the samples of utilisation in the driver's buffer, once there are enough of them."""
    samples, kind, count = (Sample * 4096)(), ctypes.c_int(), ctypes.c_uint()
    since, end = ctypes.c_ulonglong(0), time.monotonic() + 4
    while True:
        count.value = 4096
        code = nvml.nvmlDeviceGetSamples(device, 1, since, ctypes.byref(kind), ctypes.byref(count), samples)
        if code == 0 and count.value > 10 or time.monotonic() > end:
            break
        time.sleep(0.2)
    found = {"code": code, "samples": count.value if code == 0 else 0}
    at = sorted(samples[i].at for i in range(found["samples"]))
    apart = [(b - a) / 1e3 for a, b in zip(at, at[1:]) if b > a]
    if apart:
        found.update(shortest_ms=min(apart), median_ms=statistics.median(apart), longest_ms=max(apart))
    return found


def delay(nvml, device, seconds):
    """Polls the driver's buffer every 2 ms. Of each new sample: its age in milliseconds by three clocks when it was
    first seen, and how many came together. The clock of the timestamps is the one with small ages."""
    room, kind, count = (Sample * 4096)(), ctypes.c_int(), ctypes.c_uint()
    clocks = {"realtime": time.CLOCK_REALTIME, "boottime": time.CLOCK_BOOTTIME, "monotonic": time.CLOCK_MONOTONIC}
    seen, ages, batches, took, apart, tail = 0, {name: [] for name in clocks}, [], [], [], []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        count.value = 4096
        before = time.perf_counter_ns()
        code = nvml.nvmlDeviceGetSamples(device, 1, ctypes.c_ulonglong(seen), ctypes.byref(kind), ctypes.byref(count), room)
        took.append((time.perf_counter_ns() - before) / 1e3)
        now = {name: time.clock_gettime_ns(clock) / 1e3 for name, clock in clocks.items()}
        new = sorted((room[i].at, room[i].value) for i in range(count.value if code == 0 else 0) if room[i].at > seen)
        if new and seen:
            batches.append(len(new))
            apart += [(b - a) / 1e3 for (a, _), (b, _) in zip([(seen, 0), *new], new)]
            for name in clocks:
                ages[name] += [(now[name] - at) / 1e3 for at, _ in new]
            tail += [(at, value & 0xFFFFFFFF, round(now["realtime"] / 1e3)) for at, value in new]
        if new:
            seen = new[-1][0]
        time.sleep(0.002)
    return {
        "polls": len(took),
        "call_us": spread(took),
        "type": kind.value,
        "together": spread(batches),
        "apart_ms": spread(apart),
        "age_ms": {name: spread(list_ms) for name, list_ms in ages.items()},
        "last": tail[-60:],
    }


def spread(values):
    """Smallest, median and largest, and how many."""
    if not values:
        return None
    return {"n": len(values), "min": min(values), "median": statistics.median(values), "max": max(values)}


class Gpm:
    """Samples of the chip's counters, and the metrics of the newest two. None from a call: it is not time for it yet."""

    def __init__(self, nvml, device):
        self.nvml, self.device, self.samples = nvml, device, []
        self.at, self.taken, self.fresh = time.monotonic(), 0, False
        self.got = GpmMetrics(version=1, count=len(METRICS))
        if hasattr(nvml, "nvmlGpmSampleAlloc") and hasattr(nvml, "nvmlGpmSampleFree"):
            for _ in range(2):
                sample = ctypes.c_void_p()
                if nvml.nvmlGpmSampleAlloc(ctypes.byref(sample)) == 0:
                    self.samples.append(sample)

    def take(self, function):
        if len(self.samples) < 2 or time.monotonic() - self.at < GPM_APART:
            return None
        code = function(self.device, self.samples[self.taken % 2])
        self.at = time.monotonic()
        if code == 0:
            self.taken, self.fresh = self.taken + 1, True
        return code

    def ask(self, function):
        if not self.fresh or self.taken < 2:
            return None
        self.fresh = False
        self.got.first, self.got.second = self.samples[self.taken % 2], self.samples[(self.taken + 1) % 2]
        for i, number in enumerate(METRICS):
            self.got.metrics[i].id = number
        return function(ctypes.byref(self.got))

    def free(self):
        for sample in self.samples:
            self.nvml.nvmlGpmSampleFree(sample)


class Events:
    """A set that XID errors would be put in."""

    def __init__(self, nvml, device):
        self.nvml, self.set, self.room = nvml, ctypes.c_void_p(), ctypes.create_string_buffer(64)
        self.code = 13  # function not found
        if hasattr(nvml, "nvmlEventSetCreate") and hasattr(nvml, "nvmlDeviceRegisterEvents"):
            self.code = nvml.nvmlEventSetCreate(ctypes.byref(self.set))
            if self.code == 0:
                self.code = nvml.nvmlDeviceRegisterEvents(device, ctypes.c_ulonglong(XID), self.set)

    def wait(self, function):
        """Looks whether an event is there, as the agent does, and does not wait for one."""
        return self.code or function(self.set, self.room, ctypes.c_uint(0))

    def free(self):
        if self.set:
            self.nvml.nvmlEventSetFree(self.set)


def calls(device, gpm, events):
    """Calls with what they are to be given. Room for the answer is larger than any of them needs."""
    room, since, kind, count, pair = (
        ctypes.create_string_buffer(1 << 16),
        ctypes.c_ulonglong(0),
        ctypes.c_int(),
        ctypes.c_uint(0),
        [ctypes.byref(ctypes.c_uint()) for _ in range(4)],
    )
    memory, margin, other = (ctypes.c_ulonglong * 8)(), (ctypes.c_uint * 2)(8 | 1 << 24), ctypes.c_void_p()
    ctypes.cast(memory, ctypes.POINTER(ctypes.c_uint))[0] = 40 | 2 << 24  # nvmlMemory_v2: its size and version
    fields = (FieldValue * len(FIELDS))(*[FieldValue(id=n, scope=ALL_LINKS if n in LINKS else 0) for n in FIELDS])

    def fill(most):
        count.value = most
        return ctypes.byref(count)

    listed = {
        "nvmlDeviceGetSamples": lambda f: f(device, 1, since, ctypes.byref(kind), fill(1024), room),
        "nvmlDeviceGetFieldValues": lambda f: f(device, len(FIELDS), fields),
        "nvmlGpmSampleGet": gpm.take,
        "nvmlGpmMetricsGet": gpm.ask,
        "nvmlEventSetWait_v2": events.wait,
        "nvmlDeviceGetCount_v2": lambda f: f(fill(0)),
        "nvmlDeviceGetHandleByIndex_v2": lambda f: f(ctypes.c_uint(0), ctypes.byref(other)),
        "nvmlDeviceGetUUID": lambda f: f(device, room, ctypes.c_uint(96)),
        "nvmlDeviceGetName": lambda f: f(device, room, ctypes.c_uint(96)),
        "nvmlSystemGetDriverVersion": lambda f: f(room, ctypes.c_uint(96)),
        "nvmlSystemGetNVMLVersion": lambda f: f(room, ctypes.c_uint(96)),
        "nvmlDeviceGetMigMode": lambda f: f(device, *pair[:2]),
        "nvmlDeviceGetMemoryInfo": lambda f: f(device, room),
        "nvmlDeviceGetMemoryInfo_v2": lambda f: f(device, memory),
        "nvmlDeviceGetMarginTemperature": lambda f: f(device, margin),
        "nvmlDeviceGetTemperature": lambda f: f(device, 0, room),
        "nvmlDeviceGetTemperatureThreshold": lambda f: f(device, 1, room),  # of slowdown
        "nvmlDeviceGetComputeRunningProcesses_v3": lambda f: f(device, fill(256), room),
        "nvmlDeviceGetGraphicsRunningProcesses_v3": lambda f: f(device, fill(256), room),
        "nvmlDeviceGetTotalEccErrors": lambda f: f(device, 0, 0, room),
        "nvmlDeviceGetEncoderUtilization": lambda f: f(device, room, ctypes.byref(kind)),
        "nvmlDeviceGetDecoderUtilization": lambda f: f(device, room, ctypes.byref(kind)),
        "nvmlDeviceGetRemappedRows": lambda f: f(device, *pair),
        "nvmlDeviceGetRetiredPages": lambda f: f(device, 0, fill(256), room),
        "nvmlDeviceGetViolationStatus": lambda f: f(device, 0, room),  # by the cap on power
    }
    for name in (
        "UtilizationRates",
        "TotalEnergyConsumption",
        "PowerUsage",
        "EnforcedPowerLimit",
        "FanSpeed",
        "CurrPcieLinkWidth",
        "CurrPcieLinkGeneration",
        "MaxPcieLinkWidth",
        "MaxPcieLinkGeneration",
        "PcieReplayCounter",
        "RetiredPagesPendingStatus",
        "CurrentClocksEventReasons",
    ):
        listed["nvmlDeviceGet" + name] = lambda f: f(device, room)
    for number, name in enumerate(("graphics", "SM", "memory", "video")):
        listed[f"nvmlDeviceGetClockInfo {name}"] = lambda f, n=number: f(device, n, room)
    return listed


def times(nvml, device, seconds):
    """Of each call median, 99th percentile and longest in microseconds. What ctypes adds, 1 to 3 us, is in them."""
    gpm, events = Gpm(nvml, device), Events(nvml, device)
    functions, took, codes = {}, {}, {}
    listed = calls(device, gpm, events)
    for name in listed:
        functions[name], took[name] = getattr(nvml, name.split()[0], None), []
    end = time.monotonic() + seconds
    for _ in range(ROUNDS):
        for name, call in listed.items():
            if functions[name] is None:
                continue
            before = time.perf_counter_ns()
            code = call(functions[name])
            after = time.perf_counter_ns()
            if code is not None:
                codes[name] = code
                took[name].append((after - before) / 1e3)
                time.sleep(PAUSE)
        if time.monotonic() > end:
            break
    gpm.free()
    events.free()
    found = {}
    for name, list_us in took.items():
        found[name] = {"missing": True} if functions[name] is None else {"code": codes.get(name), **figures(list_us)}
    return found


def figures(list_us):
    """How many calls there were, and what they took."""
    list_us = sorted(list_us)
    if not list_us:
        return {"calls": 0}
    return {
        "calls": len(list_us),
        "median_us": round(list_us[len(list_us) // 2], 1),
        "p99_us": round(list_us[min(len(list_us) - 1, len(list_us) * 99 // 100)], 1),
        "longest_us": round(list_us[-1], 1),
    }


def fields(nvml, device, seconds):
    """By field value, and for all of them together: the codes, and what a call takes in microseconds."""
    made = [FieldValue(id=n, scope=ALL_LINKS if n in LINKS else 0) for n in FIELDS]
    asked = {str(f.id): (FieldValue * 1)(f) for f in made} | {"all": (FieldValue * len(made))(*made)}
    took = {name: [] for name in asked}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, values in asked.items():
            before = time.perf_counter_ns()
            nvml.nvmlDeviceGetFieldValues(device, len(values), values)
            took[name].append((time.perf_counter_ns() - before) / 1e3)
            time.sleep(PAUSE)
    return {name: {"codes": [v.code for v in asked[name]], **figures(list_us)} for name, list_us in took.items()}


def main():
    what, wanted, seconds = (sys.argv[1:] + ["", ""])[:3]
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    code = nvml.nvmlInit_v2()
    if code:
        sys.exit(f"nvmlInit_v2 answers {code}")
    if what == "hold":
        print(json.dumps({"gpus": open_all(nvml)}), flush=True)
        sys.stdin.read()  # ends with the program that started this one, however that ends
    elif what == "facts":
        print(json.dumps(facts(nvml, find(nvml, wanted))))
    elif what == "period":
        print(json.dumps(period(nvml, find(nvml, wanted))))
    elif what == "delay":
        print(json.dumps(delay(nvml, find(nvml, wanted), float(seconds or SECONDS))))
    elif what == "fields":
        print(json.dumps(fields(nvml, find(nvml, wanted), float(seconds or SECONDS))))
    else:
        print(json.dumps(times(nvml, find(nvml, wanted), float(seconds or SECONDS))))
    nvml.nvmlShutdown()


if __name__ == "__main__":
    main()
