// Functions of one GPU or slice that return a value or two.

int nvmlDeviceGetUUID(void *device, char *out, unsigned room) {
	ENTER_ANY(device);
	return text(out, room, s ? s->uuid : g->uuid);
}
int nvmlDeviceGetName(void *device, char *out, unsigned room) {
	ENTER_ANY(device);
	return text(out, room, s ? s->name : g->name);
}

struct util_sample { unsigned long long at; union { double d; unsigned u; unsigned long long l; } value; };

int nvmlDeviceGetSamples(void *device, int kind, unsigned long long since, int *type, unsigned *count,
	struct util_sample *out) {
	ENTER_GPU(device);
	if (kind != 1 || mig_enabled(g)) return leave(NOT_SUPPORTED); // only GPU utilization, without MIG
	*type = 1;                                               // unsigned int
	const struct player *p = &players[index];
	unsigned newer = 0, room = out ? *count : MAX_SAMPLES;
	int end = reported(p);
	for (int i = end > MAX_SAMPLES ? end - MAX_SAMPLES : 0; i < end; i++) {
		const struct sample *one = &p->sample[(p->first + i) % ROOM];
		if (one->at <= since || newer == room) continue;
		if (out) out[newer] = (struct util_sample){one->at, {.u = g->garbage ? BAD(g) : (unsigned)(one->value + 0.5)}};
		newer++;
	}
	*count = newer;
	return leave(end ? SUCCESS : NOT_FOUND);
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned out[2]) { // of the GPU, of its memory controller
	ENTER_GPU(device);
	if (mig_enabled(g)) return leave(NOT_SUPPORTED);
	const struct player *p = &players[index];
	double value = g->busy_ns < 0 && !*g->busy_file ? g->utilization : 0;
	int end = reported(p);
	if (end) value = p->sample[(p->first + end - 1) % ROOM].value;
	double controller = isnan(g->is[CONTROLLER]) ? 0 : g->is[CONTROLLER] == DERIVED ? value / 2 : g->is[CONTROLLER];
	out[0] = g->garbage ? BAD(g) : (unsigned)(value + 0.5);
	out[1] = g->garbage ? BAD(g) : (unsigned)(controller + 0.5);
	return leave(SUCCESS);
}

static int codec(const struct gpu *g, enum quantity q, unsigned *out, unsigned *period_us) {
	*period_us = (unsigned)world.period_us;
	return mig_enabled(g) ? NOT_SUPPORTED : get_quantity(g, q, 1, out);
}

int nvmlDeviceGetEncoderUtilization(void *device, unsigned *out, unsigned *period_us) {
	ENTER_GPU(device);
	return leave(codec(g, ENCODER, out, period_us));
}

int nvmlDeviceGetDecoderUtilization(void *device, unsigned *out, unsigned *period_us) {
	ENTER_GPU(device);
	return leave(codec(g, DECODER, out, period_us));
}

// SHOWN_BYTES is the memory of a process that a busy_file shows.
#define SHOWN_BYTES (1u << 30)

// shown_processes reads the processes that a busy_file shows after the kernels. Like the real driver, it leaves out those
// that have ended.
static void shown_processes(const char *path, struct processes *into) {
	uint64_t pid[MAX_PROCESSES];
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = file < 0 ? 0 : pread(file, pid, sizeof pid, sizeof(struct kernels));
	if (file >= 0) close(file);
	for (ssize_t i = 0; i < size / (ssize_t)sizeof *pid && into->count < MAX_PROCESSES; i++) {
		if (!pid[i] || pid[i] > INT32_MAX || (kill((pid_t)pid[i], 0) && errno == ESRCH)) continue;
		into->process[into->count++] = (struct process){(unsigned)pid[i], SHOWN_BYTES};
	}
}

static uint64_t used(const struct gpu *g, const struct slice *s) {
	if (g->garbage) return UINT64_MAX;
	if (s) return s->memory_used;
	struct processes shown = {0};
	if (*g->busy_file) shown_processes(g->busy_file, &shown);
	return g->memory_used + (uint64_t)shown.count * SHOWN_BYTES;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long out[3]) { // total, free, used with reserved
	ENTER_ANY(device);
	out[0] = s ? s->memory_total : g->garbage == 2 ? ~0ull : g->memory_total, out[2] = used(g, s) + (s || g->garbage ? 0 : g->memory_reserved);
	out[1] = out[0] - out[2];
	return leave(SUCCESS);
}

struct memory { unsigned version; unsigned long long total, reserved, free, used; };

int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *out) {
	ENTER_ANY(device);
	uint64_t total = s ? s->memory_total : g->memory_total, reserved = s ? 0 : g->memory_reserved;
	uint64_t bytes = used(g, s);
	*out = (struct memory){out->version, total, g->garbage ? UINT64_MAX : reserved, total - reserved - bytes, bytes};
	return leave(SUCCESS);
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *out) {
	ENTER_GPU(device);
	if (sensor) return leave(INVALID_ARGUMENT);
	*out = g->garbage ? BAD(g) : (unsigned)g->temperature;
	return leave(SUCCESS);
}

struct degrees { unsigned version; int sensor, value; };

int nvmlDeviceGetTemperatureV(void *device, struct degrees *out) {
	ENTER_GPU(device);
	if (out->version != (sizeof *out | 1 << 24)) return leave(VERSION_MISMATCH);
	if (out->sensor) return leave(INVALID_ARGUMENT);
	out->value = g->garbage ? (int)BAD(g) : g->temperature;
	return leave(SUCCESS);
}

int nvmlDeviceGetTemperatureThreshold(void *device, int kind, unsigned *out) {
	ENTER_GPU(device);
	static const enum quantity kinds[] = {SHUTDOWN_AT, SLOWDOWN_AT, MEMORY_SLOWDOWN_AT};
	if (kind < 0 || kind > 7) return leave(INVALID_ARGUMENT);
	return leave(kind > 2 ? NOT_SUPPORTED : get_quantity(g, kinds[kind], 1, out));
}

struct margin { unsigned version; int value; };

int nvmlDeviceGetMarginTemperature(void *device, struct margin *out) { // to the slowdown temperature
	ENTER_GPU(device);
	if (out->version != (sizeof *out | 1 << 24)) return leave(VERSION_MISMATCH);
	if (isnan(g->is[SLOWDOWN_AT])) return leave(NOT_SUPPORTED);
	out->value = g->garbage ? (int)BAD(g) : (int)g->is[SLOWDOWN_AT] - g->temperature;
	return leave(SUCCESS);
}

static unsigned long long millijoules(const struct gpu *g, int index) {
	if (g->garbage) return BAD64(g);
	return (unsigned long long)(1000 * (g->energy < 0 ? players[index].energy : g->energy));
}

GAUGE(nvmlDeviceGetPowerUsage, unsigned, g->garbage ? BAD(g) : g->power * 1000)
GAUGE(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, millijoules(g, index))
GAUGE(nvmlDeviceGetCurrPcieLinkWidth, unsigned, g->garbage ? BAD(g) : (unsigned)g->width)
GAUGE(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, g->garbage ? BAD(g) : (unsigned)g->generation)
GAUGE(nvmlDeviceGetMaxPcieLinkWidth, unsigned, g->width_max)
GAUGE(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, g->generation_max)
GAUGE(nvmlDeviceGetBrand, int, 14)                        // "NVIDIA"
GAUGE(nvmlDeviceGetArchitecture, unsigned, g->is[GPM] > 0 ? 9 : 7) // Hopper, or Ampere without GPM
GAUGE(nvmlDeviceGetNumFans, unsigned, !isnan(g->is[FAN]))
QUANTITY(nvmlDeviceGetEnforcedPowerLimit, POWER_LIMIT, 1000)
QUANTITY(nvmlDeviceGetPowerManagementLimit, POWER_LIMIT, 1000)
QUANTITY(nvmlDeviceGetFanSpeed, FAN, 1)
QUANTITY(nvmlDeviceGetPcieReplayCounter, PCIE_REPLAYS, 1)
QUANTITY(nvmlDeviceGetRetiredPagesPendingStatus, REPAIR_PENDING, 1)

int nvmlDeviceGetFanSpeed_v2(void *device, unsigned fan, unsigned *out) {
	ENTER_GPU(device);
	return leave(fan ? INVALID_ARGUMENT : get_quantity(g, FAN, 1, out));
}

int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
	ENTER_GPU(device);
	*major = g->is[GPM] > 0 ? 9 : 8, *minor = 0;
	return leave(SUCCESS);
}

static const enum quantity clocks[] = {CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY, CLOCK_VIDEO};

int nvmlDeviceGetClockInfo(void *device, unsigned kind, unsigned *mhz) {
	ENTER_GPU(device);
	return leave(kind > 3 ? INVALID_ARGUMENT : get_quantity(g, clocks[kind], 1, mhz));
}

int nvmlDeviceGetMaxClockInfo(void *device, unsigned kind, unsigned *mhz) {
	ENTER_GPU(device);
	static const unsigned maximum[] = {1980, 1980, 2619, 1980};
	code = kind > 3 ? INVALID_ARGUMENT : get_quantity(g, clocks[kind], 1, mhz);
	if (!code && *mhz < maximum[kind]) *mhz = maximum[kind];
	return leave(code);
}

// reasons returns the bits of the clock event reasons.
static unsigned long long reasons(const struct gpu *g) {
	static const unsigned bits[] = {0x4, 0x20, 0x48, 0x88, 0x10, 0x200, 0x400}; // hardware reasons with their general bit
	unsigned long long found = g->busy_ns < 0 && g->utilization <= 0;           // idle
	for (int i = 0; i < 7; i++) {
		if (g->is[THROTTLED_POWER + i] > 0) found |= bits[i];
	}
	return g->garbage ? ~0ull : found;
}

GAUGE(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, reasons(g))
GAUGE(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, reasons(g))

struct violation { unsigned long long at_us, ns; };

int nvmlDeviceGetViolationStatus(void *device, unsigned policy, struct violation *out) {
	ENTER_GPU(device);
	static const int of[] = {
		THROTTLED_POWER, THROTTLED_THERMAL, THROTTLED_SYNC_BOOST, THROTTLED_BOARD, -1, THROTTLED_RELIABILITY,
	};
	if (policy > 11) return leave(INVALID_ARGUMENT);
	if (policy > 5 || of[policy] < 0 || isnan(g->is[of[policy]])) return leave(NOT_SUPPORTED);
	*out = (struct violation){(unsigned long long)now_us(CLOCK_REALTIME),
		g->garbage ? BAD64(g) : (unsigned long long)(players[index].sum[of[policy]] / 100 * 1e9)};
	return leave(SUCCESS);
}

// nvmlDeviceGetPcieThroughput takes as long as the real one, which measures meanwhile. It releases the lock.
int nvmlDeviceGetPcieThroughput(void *device, unsigned direction, unsigned *kib) {
	ENTER_GPU(device);
	enum quantity q = direction ? PCIE_RECEIVED : PCIE_SENT;
	code = direction > 1 ? INVALID_ARGUMENT : get_quantity(g, q, 1.0 / 1024, kib);
	leave(code);
	nanosleep(&(struct timespec){0, 20000000}, NULL);
	return code;
}

int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active) {
	ENTER_GPU(device);
	if (isnan(g->is[NVLINK_RECEIVED])) return leave(NOT_SUPPORTED);
	*active = 1;
	return leave(link < LINKS ? SUCCESS : INVALID_ARGUMENT);
}

struct running { unsigned pid; unsigned long long bytes; unsigned instance, compute_instance; };

// list writes as many processes as there is room for, and returns how many there are.
static unsigned list(const struct processes *of, struct running *out, unsigned n, unsigned room,
	const struct slice *s) {
	for (int i = 0; i < of->count; i++, n++) {
		if (n >= room) continue;
		const struct process *p = &of->process[i];
		out[n] = (struct running){p->pid, p->bytes, s ? s->instance : ~0u, s ? s->compute_instance : ~0u};
	}
	return n;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct running *out) {
	ENTER_ANY(device);
	unsigned room = out ? *count : 0;
	struct processes own = s ? s->processes : g->processes;
	if (!s && *g->busy_file) shown_processes(g->busy_file, &own);
	*count = list(&own, out, 0, room, s);
	for (int i = 0; !s && mig_enabled(g) && i < g->slices; i++) {
		*count = list(&g->slice[i].processes, out, *count, room, &g->slice[i]);
	}
	return leave(*count > room ? INSUFFICIENT_SIZE : SUCCESS);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, struct running *out) {
	ENTER_ANY(device);
	(void)out;
	*count = 0;
	return leave(SUCCESS);
}
