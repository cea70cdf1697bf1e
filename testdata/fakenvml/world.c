// The contents of the file, and its parser. README.md has the tables.

enum { MAX_LATE_US = 4000000, MAX_GPUS = 16, MAX_SLICES = 7, MAX_PROCESSES = 64, MAX_XIDS = 32, MAX_FAULTS = 32 };
enum clock { UNIX, MONOTONIC, BOOT };

// Details of a GPU. Those before INTEGRATED are added up over time.
enum quantity {
	SM, OCCUPANCY, TENSOR, DRAM,
	PCIE_RECEIVED, PCIE_SENT, NVLINK_RECEIVED, NVLINK_SENT,
	THROTTLED_POWER, THROTTLED_THERMAL, THROTTLED_HW_THERMAL, THROTTLED_POWER_BRAKE, THROTTLED_SYNC_BOOST, THROTTLED_BOARD,
	THROTTLED_RELIABILITY,
	INTEGRATED,
	ENCODER = INTEGRATED, DECODER, CONTROLLER,
	CLOCK_SM, CLOCK_MEMORY, CLOCK_GRAPHICS, CLOCK_VIDEO,
	POWER_LIMIT, TEMPERATURE_MEMORY, SLOWDOWN_AT, SHUTDOWN_AT, MEMORY_SLOWDOWN_AT, FAN,
	ERRORS_CORRECTED, ERRORS_UNCORRECTED, PCIE_REPLAYS, ROWS_REMAPPED, PAGES_RETIRED, REPAIR_PENDING, REPAIR_FAILED,
	PCIE_COUNTER_BITS, GPM, MIG,
	QUANTITIES
};

#define DERIVED (-1e300)       // not in the file: derived from the utilization, or from the slices
#define NONE __builtin_nan("") // not supported by the GPU

static const struct { const char *name; double initial; } quantities[QUANTITIES] = {
	[SM] = {"sm", DERIVED}, [OCCUPANCY] = {"occupancy", DERIVED}, [TENSOR] = {"tensor", DERIVED}, [DRAM] = {"dram", DERIVED},
	[PCIE_RECEIVED] = {"pcie_received", 1e9}, [PCIE_SENT] = {"pcie_sent", 2e8},
	[NVLINK_RECEIVED] = {"nvlink_received", 0}, [NVLINK_SENT] = {"nvlink_sent", 0},
	[THROTTLED_POWER] = {"throttled_power", 0}, [THROTTLED_THERMAL] = {"throttled_thermal", 0},
	[THROTTLED_HW_THERMAL] = {"throttled_hw_thermal", 0}, [THROTTLED_POWER_BRAKE] = {"throttled_power_brake", 0},
	[THROTTLED_SYNC_BOOST] = {"throttled_sync_boost", 0}, [THROTTLED_BOARD] = {"throttled_board", 0},
	[THROTTLED_RELIABILITY] = {"throttled_reliability", 0},
	[ENCODER] = {"encoder", 0}, [DECODER] = {"decoder", 0}, [CONTROLLER] = {"controller", DERIVED},
	[CLOCK_SM] = {"clock_sm", 1755}, [CLOCK_MEMORY] = {"clock_memory", 2619}, [CLOCK_GRAPHICS] = {"clock_graphics", 1755},
	[CLOCK_VIDEO] = {"clock_video", 1545},
	[POWER_LIMIT] = {"power_limit", 700}, [TEMPERATURE_MEMORY] = {"temperature_memory", 50}, [SLOWDOWN_AT] = {"slowdown_at", 87},
	[SHUTDOWN_AT] = {"shutdown_at", 92}, [MEMORY_SLOWDOWN_AT] = {"memory_slowdown_at", 95}, [FAN] = {"fan", 30},
	[ERRORS_CORRECTED] = {"errors_corrected", 0}, [ERRORS_UNCORRECTED] = {"errors_uncorrected", 0},
	[PCIE_REPLAYS] = {"pcie_replays", 0}, [ROWS_REMAPPED] = {"rows_remapped", 0}, [PAGES_RETIRED] = {"pages_retired", NONE},
	[REPAIR_PENDING] = {"repair_pending", 0}, [REPAIR_FAILED] = {"repair_failed", 0},
	[PCIE_COUNTER_BITS] = {"pcie_counter_bits", 32}, [GPM] = {"gpm", 1}, [MIG] = {"mig", DERIVED},
};

struct process { unsigned pid; uint64_t bytes; };
struct processes { int count; struct process process[MAX_PROCESSES]; };
struct xid { int code; uint64_t count; };
struct counter { int fixed; uint64_t value; }; // set by the file, instead of the sum over time

struct slice { // a MIG device
	char uuid[96], name[96];
	double utilization;
	uint64_t memory_used, memory_total;
	unsigned instance, compute_instance;
	struct processes processes;
};

struct gpu {
	int exists, lost, garbage;
	char uuid[96], name[96];
	double utilization, power, energy; // percent, watts, joules (negative: from the power)
	int64_t busy_ns;                   // cumulative, or -1
	char busy_file[256];               // where a program shows its kernels, or ""
	uint64_t memory_used, memory_total, memory_reserved;
	int temperature, width, generation, width_max, generation_max;
	double is[QUANTITIES];
	struct counter counter[INTEGRATED]; // PCIe and NVLink counters in bytes
	int xids, slices;
	struct xid xid[MAX_XIDS];
	struct slice slice[MAX_SLICES];
	struct processes processes;
};

struct fault { // code is 0 for a hang
	int gpu, code, field, metric; // -1 for any GPU, and for no field or metric
	char call[64];
	double seconds;
};

struct world {
	enum clock clock;
	int64_t period_us, report_us, late_us;
	int init_error, devices, faults;
	char driver[64];
	struct gpu gpu[MAX_GPUS];
	struct fault fault[MAX_FAULTS];
};

static void init_gpu(struct world *w, int i) {
	struct gpu *g = &w->gpu[i];
	if (g->exists) return;
	*g = (struct gpu){.exists = 1, .name = "NVIDIA Fake 100", .utilization = 50, .power = 250, .energy = -1, .busy_ns = -1,
		.memory_used = 20ull << 30, .memory_total = 80ull << 30, .temperature = 45,
		.width = 16, .generation = 4, .width_max = 16, .generation_max = 5};
	for (int q = 0; q < QUANTITIES; q++) g->is[q] = quantities[q].initial;
	snprintf(g->uuid, sizeof g->uuid, "GPU-fa4e0000-0000-4000-8000-%012d", i + 1);
}

static void init_world(struct world *w) {
	memset(w, 0, sizeof *w);
	w->clock = UNIX;
	w->period_us = 166666;
	w->devices = -1;
	strcpy(w->driver, "999.00");
}

// word takes the next word from a line; double quotes keep spaces.
static char *word(char **line) {
	char *from = *line + strspn(*line, " \t\r\n"), *to = from, *at = from;
	int quoted = 0;
	if (!*from || *from == '#') return NULL;
	for (; *at && (quoted || !strchr(" \t\r\n", *at)); at++) {
		if (*at == '"') quoted = !quoted;
		else *to++ = *at;
	}
	*line = *at ? at + 1 : at;
	*to = 0;
	return from;
}

// parse_whole parses an unsigned integer exactly, or a number such as 85e9.
static int parse_whole(const char *text, uint64_t limit, uint64_t *out) {
	char *end;
	errno = 0;
	if (!text[strspn(text, "0123456789")]) {
		*out = strtoull(text, &end, 10);
	} else {
		double number = strtod(text, &end);
		if (!(number >= 0 && number < 0x1p64)) return 0;
		*out = (uint64_t)number;
	}
	return end != text && !*end && !errno && *out <= limit;
}

static int parse_processes(struct processes *into, char *list) {
	into->count = 0;
	for (char *rest, *one = strtok_r(list, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
		uint64_t pid, memory = UINT64_MAX;
		char *bytes = strchr(one, ':');
		if (bytes) *bytes++ = 0;
		if (bytes && !parse_whole(bytes, UINT64_MAX, &memory)) return 0;
		if (!parse_whole(one, UINT32_MAX, &pid) || into->count == MAX_PROCESSES) return 0;
		into->process[into->count++] = (struct process){(unsigned)pid, memory};
	}
	return 1;
}

static int parse_xids(struct gpu *g, char *list) {
	g->xids = 0;
	for (char *rest, *one = strtok_r(list, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
		uint64_t code, times;
		char *count = strchr(one, ':');
		if (!count || g->xids == MAX_XIDS) return 0;
		*count++ = 0;
		if (!parse_whole(one, INT32_MAX, &code) || !parse_whole(count, UINT64_MAX, &times)) return 0;
		g->xid[g->xids++] = (struct xid){(int)code, times};
	}
	return 1;
}

static int parse_quantity(struct gpu *g, const char *key, const char *value, double number, int is_number) {
	static const struct { const char *name; enum quantity of; } counters[] = {
		{"pcie_received_counter", PCIE_RECEIVED}, {"pcie_sent_counter", PCIE_SENT},
		{"nvlink_received_counter", NVLINK_RECEIVED}, {"nvlink_sent_counter", NVLINK_SENT},
	};
	for (int i = 0; i < 4; i++) {
		if (strcmp(key, counters[i].name)) continue;
		return g->counter[counters[i].of].fixed = parse_whole(value, UINT64_MAX, &g->counter[counters[i].of].value);
	}
	for (int q = 0; q < QUANTITIES; q++) {
		if (strcmp(key, quantities[q].name)) continue;
		if (is_number ? number > 1e18 : strcmp(value, "none")) return 0;
		g->is[q] = is_number ? number : NONE;
		return 1;
	}
	return 0;
}

static int parse_key(struct gpu *g, const char *key, char *value) {
	if (!strcmp(key, "uuid")) return snprintf(g->uuid, sizeof g->uuid, "%s", value) > 0;
	if (!strcmp(key, "name")) return snprintf(g->name, sizeof g->name, "%s", value) > 0;
	if (!strcmp(key, "busy_file")) return strlen(value) < sizeof g->busy_file && strcpy(g->busy_file, value);
	if (!strcmp(key, "processes")) return parse_processes(&g->processes, value);
	if (!strcmp(key, "xids")) return parse_xids(g, value);
	char *end;
	double number = strtod(value, &end);
	int is_number = end != value && !*end && number > -1e18 && number < 1e21; // strtod takes "nan" and "inf", too
	if (parse_quantity(g, key, value, number, is_number)) return 1;
	if (!is_number) return 0;
	if (!strcmp(key, "busy_ns")) return parse_whole(value, INT64_MAX, (uint64_t *)&g->busy_ns);
	if (!strcmp(key, "memory_used")) return parse_whole(value, UINT64_MAX, &g->memory_used);
	if (!strcmp(key, "memory_total")) return parse_whole(value, UINT64_MAX, &g->memory_total);
	if (!strcmp(key, "memory_reserved")) return parse_whole(value, UINT64_MAX, &g->memory_reserved);
	if (!strcmp(key, "utilization")) g->utilization = number;
	else if (!strcmp(key, "temperature")) g->temperature = (int)number;
	else if (!strcmp(key, "power")) g->power = number;
	else if (!strcmp(key, "energy")) g->energy = number;
	else if (!strcmp(key, "pcie_width")) g->width = (int)number;
	else if (!strcmp(key, "pcie_generation")) g->generation = (int)number;
	else if (!strcmp(key, "pcie_width_max")) g->width_max = (int)number;
	else if (!strcmp(key, "pcie_generation_max")) g->generation_max = (int)number;
	else return 0;
	return 1;
}

static int parse_slice_key(struct slice *s, const char *key, char *value) {
	if (!strcmp(key, "uuid")) return snprintf(s->uuid, sizeof s->uuid, "%s", value) > 0;
	if (!strcmp(key, "name")) return snprintf(s->name, sizeof s->name, "%s", value) > 0;
	if (!strcmp(key, "processes")) return parse_processes(&s->processes, value);
	if (!strcmp(key, "memory_used")) return parse_whole(value, UINT64_MAX, &s->memory_used);
	if (!strcmp(key, "memory_total")) return parse_whole(value, UINT64_MAX, &s->memory_total);
	uint64_t instance = 0;
	if (!strcmp(key, "gpu_instance")) {
		return parse_whole(value, INT32_MAX, &instance) && (s->instance = (unsigned)instance, 1);
	}
	if (!strcmp(key, "compute_instance")) {
		return parse_whole(value, INT32_MAX, &instance) && (s->compute_instance = (unsigned)instance, 1);
	}
	char *end;
	s->utilization = strtod(value, &end);
	return !strcmp(key, "utilization") && end != value && !*end && s->utilization >= 0 && s->utilization <= 1e9;
}

// parse_fault parses the rest of "hang" and "error".
static int parse_fault(struct world *w, char *line, int hangs) {
	struct fault t = {.gpu = -1, .field = -1, .metric = -1, .seconds = 1e9};
	for (char *key; (key = word(&line));) {
		char *value = strchr(key, '=');
		if (!value) return 0;
		*value++ = 0;
		if (!strcmp(key, "gpu")) t.gpu = atoi(value);
		else if (!strcmp(key, "call")) snprintf(t.call, sizeof t.call, "%s", value);
		else if (hangs && !strcmp(key, "seconds")) t.seconds = atof(value);
		else if (!hangs && !strcmp(key, "code")) t.code = atoi(value);
		else if (!hangs && !strcmp(key, "field")) t.field = atoi(value);
		else if (!hangs && !strcmp(key, "metric")) t.metric = atoi(value);
		else return 0;
	}
	if (w->faults == MAX_FAULTS || hangs == (t.code != 0)) return 0;
	w->fault[w->faults++] = t;
	return 1;
}

// add_slice adds a slice with defaults to a GPU.
static struct slice *add_slice(struct gpu *g, int gpu) {
	if (g->slices == MAX_SLICES) return NULL;
	struct slice *s = &g->slice[g->slices++];
	*s = (struct slice){.utilization = 50, .memory_used = 2ull << 30, .memory_total = 10ull << 30, .instance = (unsigned)g->slices,
		.name = "NVIDIA Fake 100 MIG 1g.10gb"};
	snprintf(s->uuid, sizeof s->uuid, "MIG-fa4e0000-0000-4000-8000-%06d%06d", gpu + 1, g->slices);
	return s;
}

static int parse_line(struct world *w, char *line) {
	char *what = word(&line);
	if (!what) return 1;
	if (!strcmp(what, "hang") || !strcmp(what, "error")) return parse_fault(w, line, *what == 'h');
	char *value = word(&line);
	if (!value) return 0;
	int number = atoi(value);
	if (!strcmp(what, "clock")) {
		w->clock = !strcmp(value, "unix") ? UNIX : !strcmp(value, "monotonic") ? MONOTONIC : BOOT;
		return w->clock != BOOT || !strcmp(value, "boot");
	}
	if (!strcmp(what, "driver")) return snprintf(w->driver, sizeof w->driver, "%s", value) > 0;
	if (!strcmp(what, "period_us")) return (w->period_us = number) >= TICK_US;
	if (!strcmp(what, "report_us")) return (w->report_us = number) >= 0;
	if (!strcmp(what, "late_us")) return (w->late_us = number) >= 0 && number <= MAX_LATE_US;
	if (!strcmp(what, "init_error")) return w->init_error = number, 1;
	if (!strcmp(what, "devices")) return w->devices = number, 1;
	if (number < 0 || number >= MAX_GPUS) return 0;
	init_gpu(w, number);
	struct gpu *g = &w->gpu[number];
	if (!strcmp(what, "lost")) return g->lost = 1;
	if (!strcmp(what, "garbage")) return g->garbage = 1;
	if (!strcmp(what, "ones")) return g->garbage = 2;
	int is_mig = !strcmp(what, "mig");
	if (!is_mig && strcmp(what, "gpu")) return 0;
	struct slice *s = is_mig ? add_slice(g, number) : NULL;
	if (is_mig && !s) return 0;
	for (char *key; (key = word(&line));) {
		value = strchr(key, '=');
		if (!value) return 0;
		*value++ = 0;
		if (!(is_mig ? parse_slice_key(s, key, value) : parse_key(g, key, value))) return 0;
	}
	return 1;
}

// mig_enabled returns whether MIG is on.
static int mig_enabled(const struct gpu *g) { return g->is[MIG] == DERIVED ? g->slices > 0 : g->is[MIG] > 0; }
