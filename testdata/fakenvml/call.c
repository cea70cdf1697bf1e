// What every call does first: the faults that the file plays, the lock, and the handles.

static const struct fault *fault(int gpu, const char *call, int hangs) {
	for (int i = 0; i < world.faults; i++) {
		const struct fault *t = &world.fault[i];
		if (t->field >= 0 || t->metric >= 0) continue;
		if ((t->code == 0) == hangs && (t->gpu < 0 || t->gpu == gpu) && (!*t->call || !strcmp(t->call, call))) return t;
	}
	return NULL;
}

// part_code returns the error of one field value (or metric) of a GPU, in a call that succeeds.
static int part_code(int gpu, int field, int metric) {
	for (int i = 0; i < world.faults; i++) {
		const struct fault *t = &world.fault[i];
		if (t->gpu >= 0 && t->gpu != gpu) continue;
		if ((field >= 0 && t->field == field) || (metric >= 0 && t->metric == metric)) return t->code;
	}
	return SUCCESS;
}

// hang blocks a call until its time is over or the file no longer has the statement. It releases the lock meanwhile.
static void hang(int gpu, const char *call) {
	int64_t began = now_us(CLOCK_MONOTONIC);
	for (const struct fault *t; (t = fault(gpu, call, 1));) {
		if ((double)(now_us(CLOCK_MONOTONIC) - began) / 1e6 >= t->seconds) return;
		pthread_mutex_unlock(&lock);
		nanosleep(&(struct timespec){0, TICK_US * 1000}, NULL);
		pthread_mutex_lock(&lock);
		reload();
	}
}

static int device_count(void) {
	int count = 0;
	while (count < MAX_GPUS && world.gpu[count].exists) count++;
	return world.devices >= 0 && world.devices < count ? world.devices : count;
}

static int is_lost(int gpu) { return gpu >= device_count() || world.gpu[gpu].lost; }

// enter takes the lock and returns whether the call may go on; if not, it releases the lock. gpu is -1 for no GPU.
static int enter(int gpu, const char *call) {
	int begins = !strcmp(call, "nvmlInit_v2");
	pthread_mutex_lock(&lock);
	if (begins || !sessions) reload();
	if (sessions) play();
	hang(gpu, call);
	const struct fault *t = fault(gpu, call, 0);
	int code = t ? t->code : SUCCESS;
	if (!begins && (!sessions || world.init_error)) code = UNINITIALIZED;
	else if (gpu >= 0 && is_lost(gpu)) code = LOST;
	if (code) pthread_mutex_unlock(&lock);
	return code;
}

static int leave(int code) {
	pthread_mutex_unlock(&lock);
	return code;
}

// A handle is the address of an element: of a GPU, or of a slice. The elements hold no data.
static char handles[MAX_GPUS][1 + MAX_SLICES];

static void *handle(int gpu, int slice) { return &handles[gpu][slice + 1]; }

// resolve returns the GPU of a handle, or -1, and its slice, or -1.
static int resolve(const void *device, int *slice) {
	uintptr_t at = (uintptr_t)device - (uintptr_t)handles;
	if (at >= sizeof handles) return -1;
	*slice = (int)(at % (1 + MAX_SLICES)) - 1;
	return (int)(at / (1 + MAX_SLICES));
}

// ENTER_ANY is for functions that slices support, too: s is the slice, or NULL for a GPU.
#define ENTER_ANY(device) \
	int slice, index = resolve(device, &slice); \
	if (index < 0) return INVALID_ARGUMENT; \
	int code = enter(index, __func__); \
	if (code) return code; \
	if (slice >= 0 && (!mig_enabled(&world.gpu[index]) || slice >= world.gpu[index].slices)) return leave(INVALID_ARGUMENT); \
	const struct gpu *g = &world.gpu[index]; \
	const struct slice *s = slice < 0 ? NULL : &g->slice[slice]; \
	(void)g, (void)s

// ENTER_GPU is for functions that only GPUs support.
#define ENTER_GPU(device) \
	ENTER_ANY(device); \
	if (s) return leave(NOT_SUPPORTED)

#define ENTER() \
	int code = enter(-1, __func__); \
	if (code) return code

// GAUGE defines a function that returns one value of a GPU.
#define GAUGE(name, type, expression) \
	int name(void *device, type *out) { ENTER_GPU(device); *out = (type)(expression); return leave(SUCCESS); }

// get_quantity returns a quantity times a unit as an integer.
static int get_quantity(const struct gpu *g, enum quantity q, double unit, unsigned *out) {
	if (isnan(g->is[q])) return NOT_SUPPORTED;
	*out = g->garbage ? BAD(g) : (unsigned)(int64_t)(g->is[q] * unit);
	return SUCCESS;
}

#define QUANTITY(name, quantity, unit) \
	int name(void *device, unsigned *out) { ENTER_GPU(device); return leave(get_quantity(g, quantity, unit, out)); }
