// The driver's own work: reading the file, and adding up counters over time.

// A driver keeps MAX_SAMPLES that it has reported. ROOM also holds those that it reports later: at most MAX_LATE_US and
// one report_us of the shortest period. Checking the file costs more than the rest of a call.
enum { MAX_SAMPLES = 120, ROOM = 1024, CHECK_US = 1000 };

struct sample { uint64_t at; int64_t ended_us; double value; }; // at on the clock of the file, ended_us on CLOCK_MONOTONIC

// kernels is what a program shows of its emulated GPU in its busy_file, in nanoseconds of CLOCK_MONOTONIC. The GPU was
// busy for done before start, and is busy from start to end, which may be in the future. An odd version is being written.
struct kernels { uint64_t version; int64_t done, start, end; };

struct player { // the driver's state of one GPU
	struct sample sample[ROOM];
	int first, count;
	int kernels;      // the open busy_file
	char opened[256]; // its name, or ""
	double busy_us;         // in the current period
	int64_t counted_ns;     // busy_ns that is in busy_us, or -1
	double backlog_us;      // busy time that is not in worked yet
	double energy;          // joules
	double worked;          // percent times seconds
	double sum[INTEGRATED]; // the quantity times seconds
	double slice[MAX_SLICES]; // percent times seconds
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // for everything below
static pthread_cond_t stop = PTHREAD_COND_INITIALIZER;
static struct world world;
static struct player players[MAX_GPUS];
static struct stat seen;
static int sessions;
static uintptr_t threads; // number of threads started
static pthread_t thread;
static int64_t played_us, period_began_us, checked_us, session_began_us; // CLOCK_MONOTONIC

static void queue_xids(const struct world *before, const struct world *after); // events.c

static int64_t now_us(clockid_t clock) {
	struct timespec t;
	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

// reload reads the file if it has changed. An invalid file changes nothing.
static void reload(void) {
	const char *path = getenv("FAKENVML_FILE");
	struct stat now;
	int named = path && *path;
	if (!named || stat(path, &now)) {
		if (!world.period_us || (!named && seen.st_ino)) init_world(&world), init_gpu(&world, 0), seen.st_ino = 0;
		return;
	}
	if (world.period_us && now.st_ino == seen.st_ino && now.st_size == seen.st_size &&
		!memcmp(&now.st_mtim, &seen.st_mtim, sizeof now.st_mtim)) return;
	FILE *file = fopen(path, "re");
	if (!file) return;
	static struct world next;
	init_world(&next);
	char line[4096];
	int number = 0, ok = 1;
	while (ok && fgets(line, sizeof line, file)) {
		number++;
		ok = parse_line(&next, line);
	}
	fclose(file);
	seen = now;
	if (!ok) fprintf(stderr, "fakenvml: %s:%d: invalid; the file is ignored\n", path, number);
	int any = 0;
	for (int i = 0; i < MAX_GPUS; i++) any |= next.gpu[i].exists;
	if (!any) init_gpu(&next, 0);
	for (int i = 0; ok && next.clock != world.clock && i < MAX_GPUS; i++) players[i].count = 0;
	if (ok) {
		queue_xids(&world, &next);
		world = next;
	} else if (!world.period_us) init_world(&world), init_gpu(&world, 0);
}

static void push(struct player *p, double value) {
	static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME};
	if (p->count == ROOM) p->first = (p->first + 1) % ROOM, p->count--;
	uint64_t at = (uint64_t)(now_us(clocks[world.clock]) - (now_us(CLOCK_MONOTONIC) - played_us));
	p->sample[(p->first + p->count++) % ROOM] = (struct sample){at, played_us, value};
}

// reported returns the number of samples that the driver has reported: each report_us, those that are older than late_us.
static int reported(const struct player *p) {
	int64_t until = now_us(CLOCK_MONOTONIC);
	if (world.report_us) until -= (until - session_began_us) % world.report_us;
	until -= world.late_us;
	int n = p->count;
	while (n > 0 && p->sample[(p->first + n - 1) % ROOM].ended_us > until) n--;
	return n;
}

// shown returns the busy time up to a moment that the program shows, or -1. It reads the file: a map of one that is
// shortened in the meantime would end the process with SIGBUS.
static int64_t shown(const struct gpu *g, struct player *p, int64_t at_us) {
	if (strcmp(p->opened, g->busy_file)) {
		if (*p->opened) close(p->kernels);
		*p->opened = 0;
		p->kernels = open(g->busy_file, O_RDONLY | O_CLOEXEC);
		if (p->kernels < 0) return -1;
		strcpy(p->opened, g->busy_file);
	}
	struct kernels now;
	for (int try = 0; try < 1000; try++) { // a writer that was killed in between leaves an odd version
		uint64_t version;
		if (pread(p->kernels, &now, sizeof now, 0) != sizeof now) return -1;
		if (pread(p->kernels, &version, sizeof version, 0) != sizeof version) return -1;
		if (!(version & 1) && version == now.version) break;
		sched_yield();
	}
	int64_t at = at_us * 1000, current = (at < now.end ? at : now.end) - now.start;
	return now.done + (current > 0 ? current : 0);
}

// integrate advances the sums of one GPU by a time step. Late busy time is caught up at full speed, so that no mean is
// above 100 %.
static void integrate(const struct gpu *g, struct player *p, double step_us) {
	double seconds = step_us / 1e6, busy_us = p->backlog_us < step_us ? p->backlog_us : step_us;
	static const double share[] = {[SM] = 1, [OCCUPANCY] = 0.5, [TENSOR] = 0.5, [DRAM] = 0.5};
	p->backlog_us -= busy_us;
	p->worked += 100 * busy_us / 1e6;
	for (int q = 0; q < INTEGRATED; q++) {
		if (g->is[q] == DERIVED) p->sum[q] += share[q] * 100 * busy_us / 1e6;
		else if (!isnan(g->is[q])) p->sum[q] += g->is[q] * seconds;
	}
	for (int i = 0; i < g->slices; i++) p->slice[i] += g->slice[i].utilization * seconds;
	p->energy += g->power * seconds;
}

// busy returns the new busy time.
static double busy(const struct gpu *g, struct player *p, double step_us, int64_t to_us) {
	int64_t total = *g->busy_file ? shown(g, p, to_us) : g->busy_ns;
	if (total < 0) {
		p->counted_ns = -1;
		return *g->busy_file ? 0 : g->utilization / 100 * step_us;
	}
	double grew_us = p->counted_ns >= 0 && total > p->counted_ns ? (double)(total - p->counted_ns) / 1e3 : 0;
	p->counted_ns = total;
	return grew_us;
}

// play brings the samples up to date. Busy time beyond a period's length counts for the next period.
static void play(void) {
	int64_t now = now_us(CLOCK_MONOTONIC);
	if (now - checked_us >= CHECK_US) {
		checked_us = now;
		reload();
	}
	while (played_us < now) {
		int64_t end = period_began_us + world.period_us, to = now < end ? now : end;
		if (to < played_us) to = played_us;
		for (int i = 0; i < MAX_GPUS; i++) {
			struct gpu *g = &world.gpu[i];
			struct player *p = &players[i];
			if (!g->exists) continue;
			double step = (double)(to - played_us), grew = busy(g, p, step, to);
			p->busy_us += grew, p->backlog_us += grew;
			integrate(g, p, step);
		}
		played_us = to;
		if (to < end) break;
		for (int i = 0; i < MAX_GPUS; i++) {
			struct player *p = &players[i];
			double period = (double)world.period_us, busy = p->busy_us < period ? p->busy_us : period;
			if (world.gpu[i].exists && !world.gpu[i].lost) push(p, 100 * busy / period);
			p->busy_us -= busy;
		}
		period_began_us = to;
	}
}

// run plays until its session ends, also if another session has begun before it could notice.
static void *run(void *number) {
	pthread_mutex_lock(&lock);
	while (sessions && threads == (uintptr_t)number) {
		play();
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += TICK_US * 1000;
		if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
		pthread_cond_timedwait(&stop, &lock, &until);
	}
	pthread_mutex_unlock(&lock);
	return number;
}
