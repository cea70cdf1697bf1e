// GPM, the performance counters of the GPU: two samples, and the means between them.

enum { MAX_GPM = 256, METRICS = 477, GPM_APART_US = 100000 };

struct gpm_sample {
	int used, gpu, slice; // gpu is -1 for an empty sample
	int64_t at_us;
	double worked, sum[INTEGRATED];
};

static struct gpm_sample gpm_samples[MAX_GPM];

static void reset_gpm(void) { memset(gpm_samples, 0, sizeof gpm_samples); }

// gpm returns the sample of a handle, or NULL.
static struct gpm_sample *gpm(const void *sample) {
	uintptr_t at = (uintptr_t)sample - (uintptr_t)gpm_samples;
	if (at >= sizeof gpm_samples || at % sizeof *gpm_samples) return NULL;
	struct gpm_sample *s = &gpm_samples[at / sizeof *gpm_samples];
	return s->used ? s : NULL;
}

struct gpm_support { unsigned version, supported; };

int nvmlGpmQueryDeviceSupport(void *device, struct gpm_support *out) {
	ENTER_GPU(device);
	if (out->version != 1) return leave(VERSION_MISMATCH);
	out->supported = g->is[GPM] > 0;
	return leave(SUCCESS);
}

int nvmlGpmQueryIfStreamingEnabled(void *device, unsigned *out) {
	ENTER_GPU(device);
	*out = 0;
	return leave(g->is[GPM] > 0 ? SUCCESS : NOT_SUPPORTED);
}

int nvmlGpmSampleAlloc(void **out) {
	ENTER();
	for (int i = 0; i < MAX_GPM; i++) {
		if (gpm_samples[i].used) continue;
		gpm_samples[i] = (struct gpm_sample){.used = 1, .gpu = -1};
		*out = &gpm_samples[i];
		return leave(SUCCESS);
	}
	return leave(NO_MEMORY);
}

int nvmlGpmSampleFree(void *sample) {
	ENTER();
	struct gpm_sample *s = gpm(sample);
	if (!s) return leave(INVALID_ARGUMENT);
	s->used = 0;
	return leave(SUCCESS);
}

int nvmlGpmSampleGet(void *device, void *sample) {
	ENTER_GPU(device);
	struct gpm_sample *into = gpm(sample);
	if (!into) return leave(INVALID_ARGUMENT);
	if (!(g->is[GPM] > 0)) return leave(NOT_SUPPORTED);
	*into = (struct gpm_sample){.used = 1, .gpu = index, .slice = -1, .at_us = played_us, .worked = players[index].worked};
	memcpy(into->sum, players[index].sum, sizeof into->sum);
	return leave(SUCCESS);
}

// A slice has metrics derived from its utilization only.
int nvmlGpmMigSampleGet(void *device, unsigned instance, void *sample) {
	ENTER_GPU(device);
	struct gpm_sample *into = gpm(sample);
	if (!into) return leave(INVALID_ARGUMENT);
	if (!(g->is[GPM] > 0) || !mig_enabled(g)) return leave(NOT_SUPPORTED);
	for (int i = 0; i < g->slices; i++) {
		if (g->slice[i].instance != instance) continue;
		double worked = players[index].slice[i];
		*into = (struct gpm_sample){.used = 1, .gpu = index, .slice = i, .at_us = played_us, .worked = worked,
			.sum = {[SM] = worked, [OCCUPANCY] = worked / 2, [TENSOR] = worked / 2, [DRAM] = worked / 2}};
		return leave(SUCCESS);
	}
	return leave(NOT_FOUND);
}

// The layouts of nvmlGpmMetric_t and nvmlGpmMetricsGet_t.
struct metric { unsigned id, code; double value; const char *name, *long_name, *unit; };
struct metrics { unsigned version, count; void *first, *second; struct metric metric[METRICS]; };

static const struct { unsigned id; int of; double unit; } metrics[] = { // of is -1 for the work of the GPU
	{1, -1, 1}, {2, SM, 1}, {3, OCCUPANCY, 1}, {5, TENSOR, 1}, {10, DRAM, 1}, // percent
	{20, PCIE_SENT, 1 << 20}, {21, PCIE_RECEIVED, 1 << 20}, {60, NVLINK_RECEIVED, 1 << 20}, {61, NVLINK_SENT, 1 << 20}, // MiB/s
};

static void set_metric(struct metric *m, const struct gpm_sample *a, const struct gpm_sample *b) {
	const struct gpu *g = &world.gpu[b->gpu];
	double seconds = (double)(b->at_us - a->at_us) / 1e6;
	m->code = NOT_SUPPORTED, m->name = m->long_name = m->unit = NULL;
	for (unsigned i = 0; i < sizeof metrics / sizeof *metrics; i++) {
		int of = metrics[i].of;
		if (metrics[i].id != m->id || (of >= 0 && isnan(g->is[of])) || (of > DRAM && b->slice >= 0)) continue;
		double grew = of < 0 ? b->worked - a->worked : b->sum[of] - a->sum[of];
		m->code = SUCCESS, m->value = g->garbage == 2 ? NAN : g->garbage ? GARBAGE : grew / seconds / metrics[i].unit;
		break;
	}
	int code = part_code(b->gpu, -1, (int)m->id);
	if (code) m->code = (unsigned)code;
}

// gpu_of returns the GPU of a sample, or -1.
static int gpu_of(const void *sample) {
	pthread_mutex_lock(&lock);
	const struct gpm_sample *s = gpm(sample);
	int gpu = s ? s->gpu : -1;
	pthread_mutex_unlock(&lock);
	return gpu;
}

int nvmlGpmMetricsGet(struct metrics *m) {
	int code = enter(gpu_of(m->second), __func__);
	if (code) return code;
	const struct gpm_sample *a = gpm(m->first), *b = gpm(m->second);
	if (m->version != 1) return leave(VERSION_MISMATCH);
	if (!a || !b || a->gpu < 0 || b->gpu != a->gpu || b->slice != a->slice) return leave(INVALID_ARGUMENT);
	if (m->count > METRICS) return leave(INVALID_ARGUMENT);
	if (b->at_us - a->at_us < GPM_APART_US) return leave(INVALID_ARGUMENT);
	for (unsigned i = 0; i < m->count; i++) set_metric(&m->metric[i], a, b);
	return leave(SUCCESS);
}
