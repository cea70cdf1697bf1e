// XID errors as events.

enum { MAX_SETS = 16, MAX_EVENTS = 128 };
#define XID 8ull // the event type

struct event { int gpu; uint64_t code; };

struct event_set {
	int used, waiting, first, count;
	unsigned long long types[MAX_GPUS]; // registered event types of each GPU
	struct event event[MAX_EVENTS];
};

static struct event_set sets[MAX_SETS];
static pthread_cond_t event_queued = PTHREAD_COND_INITIALIZER;

static void reset_events(void) {
	for (int i = 0; i < MAX_SETS; i++) sets[i].used = 0;
	pthread_cond_broadcast(&event_queued);
}

// queue drops the newest events if a set is full.
static void queue(int gpu, uint64_t code, uint64_t times) {
	for (int i = 0; i < MAX_SETS; i++) {
		struct event_set *s = &sets[i];
		if (!s->used || !(s->types[gpu] & XID)) continue;
		for (uint64_t n = 0; n < times && s->count < MAX_EVENTS; n++) {
			s->event[(s->first + s->count++) % MAX_EVENTS] = (struct event){gpu, code};
		}
	}
	pthread_cond_broadcast(&event_queued);
}

static uint64_t xids(const struct gpu *g, int code) {
	for (int i = 0; i < g->xids; i++) {
		if (g->xid[i].code == code) return g->xid[i].count;
	}
	return 0;
}

static void queue_xids(const struct world *before, const struct world *after) {
	for (int i = 0; i < MAX_GPUS; i++) {
		for (int n = 0; n < after->gpu[i].xids; n++) {
			const struct xid *x = &after->gpu[i].xid[n];
			uint64_t old = xids(&before->gpu[i], x->code);
			if (x->count > old) queue(i, (uint64_t)x->code, x->count - old);
		}
	}
}

// event_set returns the set of a handle, or NULL.
static struct event_set *event_set(const void *set) {
	uintptr_t at = (uintptr_t)set - (uintptr_t)sets;
	if (at >= sizeof sets || at % sizeof *sets) return NULL;
	struct event_set *s = &sets[at / sizeof *sets];
	return s->used ? s : NULL;
}

int nvmlEventSetCreate(void **out) {
	ENTER();
	for (int i = 0; i < MAX_SETS; i++) {
		if (sets[i].used || sets[i].waiting) continue;
		sets[i] = (struct event_set){.used = 1};
		*out = &sets[i];
		return leave(SUCCESS);
	}
	return leave(NO_MEMORY);
}

int nvmlEventSetFree(void *set) {
	ENTER();
	struct event_set *s = event_set(set);
	if (!s) return leave(INVALID_ARGUMENT);
	s->used = 0;
	pthread_cond_broadcast(&event_queued);
	return leave(SUCCESS);
}

GAUGE(nvmlDeviceGetSupportedEventTypes, unsigned long long, XID)

int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set) {
	ENTER_GPU(device);
	struct event_set *into = event_set(set);
	if (!into || !types) return leave(INVALID_ARGUMENT);
	if (types & ~XID) return leave(NOT_SUPPORTED);
	into->types[index] |= types;
	return leave(SUCCESS);
}

struct event_data { void *device; unsigned long long type, data; unsigned instance, compute_instance; };

// take returns the oldest event. Without an event it returns LOST if a registered GPU is lost.
static int take(struct event_set *s, struct event_data *out) {
	if (s->count) {
		struct event e = s->event[s->first];
		s->first = (s->first + 1) % MAX_EVENTS, s->count--;
		*out = (struct event_data){handle(e.gpu, -1), XID, world.gpu[e.gpu].garbage ? GARBAGE : e.code, ~0u, ~0u};
		return SUCCESS;
	}
	for (int i = 0; i < MAX_GPUS; i++) {
		if (s->types[i] && is_lost(i)) return LOST;
	}
	return TIMEOUT;
}

static int wait_event(struct event_set *s, struct event_data *out, unsigned ms) {
	int64_t until = now_us(CLOCK_MONOTONIC) + (int64_t)ms * 1000;
	for (;;) {
		if (!sessions || world.init_error) return UNINITIALIZED;
		if (!s->used) return INVALID_ARGUMENT;
		int code = take(s, out);
		if (code != TIMEOUT || now_us(CLOCK_MONOTONIC) >= until) return code;
		struct timespec soon; // as often as the other thread checks the file
		clock_gettime(CLOCK_REALTIME, &soon);
		soon.tv_nsec += TICK_US * 1000;
		if (soon.tv_nsec >= 1000000000) soon.tv_sec++, soon.tv_nsec -= 1000000000;
		s->waiting++;
		pthread_cond_timedwait(&event_queued, &lock, &soon);
		s->waiting--;
	}
}

int nvmlEventSetWait_v2(void *set, struct event_data *out, unsigned ms) {
	ENTER();
	struct event_set *s = event_set(set);
	return leave(s ? wait_event(s, out, ms) : INVALID_ARGUMENT);
}

int nvmlEventSetWait(void *set, struct event_data *out, unsigned ms) {
	ENTER();
	struct event_set *s = event_set(set);
	return leave(s ? wait_event(s, out, ms) : INVALID_ARGUMENT);
}
