// A stand-in for libnvidia-ml.so.1: what a program asks NVML is answered from a text file that any process may rewrite
// while it runs. README.md says what the file may hold. Only the functions that Stallspan calls are there; their types
// follow NVIDIA's documents, with handles as plain pointers.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, LOST = 15 };
enum { MOST_GPUS = 16, MOST_SAMPLES = 120, MOST_PROCESSES = 64, MOST_TROUBLES = 32, TICK_US = 10000 };
enum clock { UNIX, MONOTONIC, BOOT };
#define GARBAGE 808334905u

struct process { unsigned pid; uint64_t bytes; };

struct gpu {
	int there, lost, garbage;
	char uuid[96], name[96];
	double utilization, power, energy; // percent, watts, joules (negative: from the power)
	int64_t busy_ns;                   // cumulative, or -1
	uint64_t memory_used, memory_total;
	int temperature, width, generation, width_max, generation_max;
	int processes;
	struct process process[MOST_PROCESSES];
};

struct trouble { int gpu, code; char call[64]; double seconds; }; // code 0: it hangs

struct world { // what the file says
	enum clock clock;
	int64_t period_us;
	int init_error, devices, troubles;
	char driver[64];
	struct gpu gpu[MOST_GPUS];
	struct trouble trouble[MOST_TROUBLES];
};

struct sample { uint64_t at; double value; };

struct player { // what the driver has gathered of one GPU
	struct sample sample[MOST_SAMPLES];
	int first, count;
	double busy_us;   // in the period under way
	int64_t told_ns;  // busy_ns that is in busy_us, or -1
	double energy;    // joules
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // for all that follows
static pthread_cond_t stop = PTHREAD_COND_INITIALIZER;
static struct world world;
static struct player players[MOST_GPUS];
static struct stat seen;
static int sessions;
static pthread_t thread;
static int64_t played_us, period_began_us; // CLOCK_MONOTONIC

static int64_t now_us(clockid_t clock) {
	struct timespec t;
	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void set_gpu(struct world *w, int i) {
	struct gpu *g = &w->gpu[i];
	if (g->there) return;
	*g = (struct gpu){.there = 1, .name = "NVIDIA Fake 100", .utilization = 50, .power = 250, .energy = -1, .busy_ns = -1,
		.memory_used = 20ull << 30, .memory_total = 80ull << 30, .temperature = 45,
		.width = 16, .generation = 4, .width_max = 16, .generation_max = 5};
	snprintf(g->uuid, sizeof g->uuid, "GPU-fa4e0000-0000-4000-8000-%012d", i + 1);
}

static void set_world(struct world *w) {
	memset(w, 0, sizeof *w);
	w->clock = UNIX;
	w->period_us = 166666;
	w->devices = -1;
	strcpy(w->driver, "999.00");
}

// word takes the next word off a line; double quotes hold blanks together.
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

static int parse_processes(struct gpu *g, char *list) {
	g->processes = 0;
	for (char *rest, *one = strtok_r(list, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
		struct process p = {0, UINT64_MAX};
		char *bytes = strchr(one, ':');
		p.pid = (unsigned)strtoul(one, NULL, 10);
		if (bytes) p.bytes = strtoull(bytes + 1, NULL, 10);
		if (!p.pid || g->processes == MOST_PROCESSES) return 0;
		g->process[g->processes++] = p;
	}
	return 1;
}

static int parse_key(struct gpu *g, char *key, char *value) {
	if (!strcmp(key, "uuid")) return snprintf(g->uuid, sizeof g->uuid, "%s", value) > 0;
	if (!strcmp(key, "name")) return snprintf(g->name, sizeof g->name, "%s", value) > 0;
	if (!strcmp(key, "processes")) return parse_processes(g, value);
	char *end;
	double number = strtod(value, &end);
	if (end == value || *end) return 0;
	if (!strcmp(key, "utilization")) g->utilization = number;
	else if (!strcmp(key, "busy_ns")) g->busy_ns = strtoll(value, NULL, 10);
	else if (!strcmp(key, "memory_used")) g->memory_used = strtoull(value, NULL, 10);
	else if (!strcmp(key, "memory_total")) g->memory_total = strtoull(value, NULL, 10);
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

// parse_trouble reads what follows "hang" and "error".
static int parse_trouble(struct world *w, char *line, int hangs) {
	struct trouble t = {.gpu = -1, .seconds = 1e9};
	for (char *key; (key = word(&line));) {
		char *value = strchr(key, '=');
		if (!value) return 0;
		*value++ = 0;
		if (!strcmp(key, "gpu")) t.gpu = atoi(value);
		else if (!strcmp(key, "call")) snprintf(t.call, sizeof t.call, "%s", value);
		else if (hangs && !strcmp(key, "seconds")) t.seconds = atof(value);
		else if (!hangs && !strcmp(key, "code")) t.code = atoi(value);
		else return 0;
	}
	if (w->troubles == MOST_TROUBLES || hangs == (t.code != 0)) return 0;
	w->trouble[w->troubles++] = t;
	return 1;
}

static int parse_line(struct world *w, char *line) {
	char *what = word(&line);
	if (!what) return 1;
	if (!strcmp(what, "hang") || !strcmp(what, "error")) return parse_trouble(w, line, *what == 'h');
	char *value = word(&line);
	if (!value) return 0;
	int number = atoi(value);
	if (!strcmp(what, "clock")) {
		w->clock = !strcmp(value, "unix") ? UNIX : !strcmp(value, "monotonic") ? MONOTONIC : BOOT;
		return w->clock != BOOT || !strcmp(value, "boot");
	}
	if (!strcmp(what, "driver")) return snprintf(w->driver, sizeof w->driver, "%s", value) > 0;
	if (!strcmp(what, "period_us")) return (w->period_us = number) >= TICK_US;
	if (!strcmp(what, "init_error")) return w->init_error = number, 1;
	if (!strcmp(what, "devices")) return w->devices = number, 1;
	if (number < 0 || number >= MOST_GPUS) return 0;
	set_gpu(w, number);
	struct gpu *g = &w->gpu[number];
	if (!strcmp(what, "lost")) return g->lost = 1;
	if (!strcmp(what, "garbage")) return g->garbage = 1;
	if (strcmp(what, "gpu")) return 0;
	for (char *key; (key = word(&line));) {
		value = strchr(key, '=');
		if (!value) return 0;
		*value++ = 0;
		if (!parse_key(g, key, value)) return 0;
	}
	return 1;
}

// reload reads the file when it is another than before. One that cannot be understood changes nothing.
static void reload(void) {
	const char *path = getenv("FAKENVML_FILE");
	struct stat now;
	int named = path && *path;
	if (!named || stat(path, &now)) {
		if (!world.period_us || (!named && seen.st_ino)) set_world(&world), set_gpu(&world, 0), seen.st_ino = 0;
		return;
	}
	if (world.period_us && now.st_ino == seen.st_ino && now.st_size == seen.st_size &&
		!memcmp(&now.st_mtim, &seen.st_mtim, sizeof now.st_mtim)) return;
	FILE *file = fopen(path, "re");
	if (!file) return;
	static struct world next;
	set_world(&next);
	char line[4096];
	int number = 0, ok = 1;
	while (ok && fgets(line, sizeof line, file)) {
		number++;
		ok = parse_line(&next, line);
	}
	fclose(file);
	seen = now;
	if (!ok) fprintf(stderr, "fakenvml: %s:%d: not understood; the file is left out\n", path, number);
	int any = 0;
	for (int i = 0; i < MOST_GPUS; i++) any |= next.gpu[i].there;
	if (!any) set_gpu(&next, 0);
	for (int i = 0; ok && next.clock != world.clock && i < MOST_GPUS; i++) players[i].count = 0;
	if (ok) world = next;
	else if (!world.period_us) set_world(&world), set_gpu(&world, 0);
}

static void push(struct player *p, double value) {
	static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME};
	if (p->count == MOST_SAMPLES) p->first = (p->first + 1) % MOST_SAMPLES, p->count--;
	uint64_t at = (uint64_t)(now_us(clocks[world.clock]) - (now_us(CLOCK_MONOTONIC) - played_us));
	p->sample[(p->first + p->count++) % MOST_SAMPLES] = (struct sample){at, value};
}

// play brings the samples up to date. Busy time beyond a period's length counts for the next one.
static void play(void) {
	int64_t now = now_us(CLOCK_MONOTONIC);
	reload();
	while (played_us < now) {
		int64_t end = period_began_us + world.period_us, to = now < end ? now : end;
		if (to < played_us) to = played_us;
		for (int i = 0; i < MOST_GPUS; i++) {
			struct gpu *g = &world.gpu[i];
			struct player *p = &players[i];
			if (!g->there) continue;
			p->energy += g->power * (double)(to - played_us) / 1e6;
			if (g->busy_ns < 0) {
				p->busy_us += g->utilization / 100 * (double)(to - played_us);
				p->told_ns = -1;
			} else {
				if (p->told_ns >= 0 && g->busy_ns > p->told_ns) p->busy_us += (double)(g->busy_ns - p->told_ns) / 1e3;
				p->told_ns = g->busy_ns;
			}
		}
		played_us = to;
		if (to < end) break;
		for (int i = 0; i < MOST_GPUS; i++) {
			struct player *p = &players[i];
			double period = (double)world.period_us, busy = p->busy_us < period ? p->busy_us : period;
			if (world.gpu[i].there && !world.gpu[i].lost) push(p, 100 * busy / period);
			p->busy_us -= busy;
		}
		period_began_us = to;
	}
}

static void *run(void *unused) {
	pthread_mutex_lock(&lock);
	while (sessions) {
		play();
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += TICK_US * 1000;
		if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
		pthread_cond_timedwait(&stop, &lock, &until);
	}
	pthread_mutex_unlock(&lock);
	return unused;
}

static const struct trouble *trouble(int gpu, const char *call, int hangs) {
	for (int i = 0; i < world.troubles; i++) {
		const struct trouble *t = &world.trouble[i];
		if ((t->code == 0) == hangs && (t->gpu < 0 || t->gpu == gpu) && (!*t->call || !strcmp(t->call, call))) return t;
	}
	return NULL;
}

// hang keeps a call until its time is over or the file no longer says so. The lock is open meanwhile.
static void hang(int gpu, const char *call) {
	int64_t began = now_us(CLOCK_MONOTONIC);
	for (const struct trouble *t; (t = trouble(gpu, call, 1));) {
		if ((double)(now_us(CLOCK_MONOTONIC) - began) / 1e6 >= t->seconds) return;
		pthread_mutex_unlock(&lock);
		nanosleep(&(struct timespec){0, TICK_US * 1000}, NULL);
		pthread_mutex_lock(&lock);
		reload();
	}
}

static int device_count(void) {
	int count = 0;
	while (count < MOST_GPUS && world.gpu[count].there) count++;
	return world.devices >= 0 && world.devices < count ? world.devices : count;
}

// enter takes the lock and says whether the call may go on; if not, the lock is open again. gpu -1 is no GPU.
static int enter(int gpu, const char *call) {
	pthread_mutex_lock(&lock);
	if (sessions) play();
	else reload();
	hang(gpu, call);
	const struct trouble *t = trouble(gpu, call, 0);
	int code = t ? t->code : SUCCESS;
	if (strcmp(call, "nvmlInit_v2") && (!sessions || world.init_error)) code = UNINITIALIZED;
	else if (gpu >= 0 && (gpu >= device_count() || world.gpu[gpu].lost)) code = LOST;
	if (code) pthread_mutex_unlock(&lock);
	return code;
}

static int leave(int code) {
	pthread_mutex_unlock(&lock);
	return code;
}

// A device's handle is its index and one more, as a pointer.
#define ENTER_GPU(device) \
	int index = (int)(intptr_t)(device) - 1; \
	if (index < 0 || index >= MOST_GPUS) return INVALID_ARGUMENT; \
	int code = enter(index, __func__); \
	if (code) return code; \
	const struct gpu *g = &world.gpu[index]

#define ENTER() \
	int code = enter(-1, __func__); \
	if (code) return code

int nvmlInit_v2(void) {
	ENTER();
	if (world.init_error) return leave(world.init_error);
	if (sessions++) return leave(SUCCESS);
	memset(players, 0, sizeof players);
	for (int i = 0; i < MOST_GPUS; i++) players[i].told_ns = -1;
	played_us = period_began_us = now_us(CLOCK_MONOTONIC);
	pthread_create(&thread, NULL, run, NULL);
	return leave(SUCCESS);
}

int nvmlShutdown(void) {
	ENTER();
	if (--sessions) return leave(SUCCESS);
	pthread_t last = thread;
	pthread_cond_signal(&stop);
	leave(SUCCESS);
	pthread_join(last, NULL);
	return SUCCESS;
}

const char *nvmlErrorString(int code) { return code ? "an error of the fake driver" : "Success"; }

static int text(char *out, unsigned room, const char *value) {
	return leave(strlen(value) < room ? (strcpy(out, value), SUCCESS) : INSUFFICIENT_SIZE);
}

int nvmlSystemGetDriverVersion(char *out, unsigned room) { ENTER(); return text(out, room, world.driver); }
int nvmlSystemGetNVMLVersion(char *out, unsigned room) { ENTER(); return text(out, room, "13.fake"); }
int nvmlDeviceGetCount_v2(unsigned *count) { ENTER(); *count = (unsigned)device_count(); return leave(SUCCESS); }

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device) {
	int code = enter(i < MOST_GPUS ? (int)i : MOST_GPUS, __func__);
	if (code) return code;
	*device = (void *)(intptr_t)(i + 1);
	return leave(SUCCESS);
}

int nvmlDeviceGetUUID(void *device, char *out, unsigned room) { ENTER_GPU(device); return text(out, room, g->uuid); }
int nvmlDeviceGetName(void *device, char *out, unsigned room) { ENTER_GPU(device); return text(out, room, g->name); }

struct told { unsigned long long at; union { double d; unsigned u; unsigned long long l; } value; };

int nvmlDeviceGetSamples(void *device, int kind, unsigned long long since, int *type, unsigned *count, struct told *out) {
	ENTER_GPU(device);
	if (kind != 1) return leave(NOT_SUPPORTED); // anything but the utilisation of the whole
	*type = 1;                                  // unsigned int
	const struct player *p = &players[index];
	unsigned newer = 0, room = out ? *count : MOST_SAMPLES;
	for (int i = 0; i < p->count; i++) {
		const struct sample *s = &p->sample[(p->first + i) % MOST_SAMPLES];
		if (s->at <= since || newer == room) continue;
		if (out) out[newer] = (struct told){s->at, {.u = g->garbage ? GARBAGE : (unsigned)(s->value + 0.5)}};
		newer++;
	}
	*count = newer;
	return leave(p->count ? SUCCESS : NOT_FOUND);
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned out[2]) {
	ENTER_GPU(device);
	const struct player *p = &players[index];
	double value = p->count ? p->sample[(p->first + p->count - 1) % MOST_SAMPLES].value : g->busy_ns < 0 ? g->utilization : 0;
	out[0] = out[1] = g->garbage ? GARBAGE : (unsigned)(value + 0.5);
	return leave(SUCCESS);
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long out[3]) { // total, free, used
	ENTER_GPU(device);
	out[0] = g->memory_total, out[2] = g->garbage ? UINT64_MAX : g->memory_used, out[1] = out[0] - out[2];
	return leave(SUCCESS);
}

struct memory { unsigned version; unsigned long long total, reserved, free, used; };

int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *out) {
	ENTER_GPU(device);
	uint64_t used = g->garbage ? UINT64_MAX : g->memory_used;
	*out = (struct memory){out->version, g->memory_total, 0, g->memory_total - used, used};
	return leave(SUCCESS);
}

#define GAUGE(name, type, expression) \
	int name(void *device, type *out) { ENTER_GPU(device); *out = (type)(expression); return leave(SUCCESS); }

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *out) {
	ENTER_GPU(device);
	if (sensor) return leave(INVALID_ARGUMENT);
	*out = g->garbage ? GARBAGE : (unsigned)g->temperature;
	return leave(SUCCESS);
}

GAUGE(nvmlDeviceGetPowerUsage, unsigned, g->garbage ? GARBAGE : g->power * 1000)
GAUGE(nvmlDeviceGetTotalEnergyConsumption, unsigned long long,
	g->garbage ? (double)(1ull << 63) : 1000 * (g->energy < 0 ? players[index].energy : g->energy))
GAUGE(nvmlDeviceGetCurrPcieLinkWidth, unsigned, g->garbage ? GARBAGE : (unsigned)g->width)
GAUGE(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, g->garbage ? GARBAGE : (unsigned)g->generation)
GAUGE(nvmlDeviceGetMaxPcieLinkWidth, unsigned, g->width_max)
GAUGE(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, g->generation_max)

struct running { unsigned pid; unsigned long long bytes; unsigned instance, compute_instance; };

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct running *out) {
	ENTER_GPU(device);
	unsigned room = *count;
	*count = (unsigned)g->processes;
	if (room < *count) return leave(INSUFFICIENT_SIZE);
	for (unsigned i = 0; i < *count; i++) out[i] = (struct running){g->process[i].pid, g->process[i].bytes, ~0u, ~0u};
	return leave(SUCCESS);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, struct running *out) {
	ENTER_GPU(device);
	(void)g, (void)out;
	*count = 0;
	return leave(SUCCESS);
}
