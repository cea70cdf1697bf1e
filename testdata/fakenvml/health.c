// Memory errors and their repair.

int nvmlDeviceGetEccMode(void *device, unsigned *current, unsigned *pending) {
	ENTER_GPU(device);
	*current = *pending = 1;
	return leave(isnan(g->is[ERRORS_CORRECTED]) ? NOT_SUPPORTED : SUCCESS);
}

static int errors(const struct gpu *g, unsigned kind, unsigned counter, unsigned long long *out) {
	if (kind > 1 || counter > 1) return INVALID_ARGUMENT;
	double value = g->is[kind ? ERRORS_UNCORRECTED : ERRORS_CORRECTED];
	if (isnan(value)) return NOT_SUPPORTED;
	*out = g->garbage ? BAD64(g) : (unsigned long long)value;
	return SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(void *device, unsigned kind, unsigned counter, unsigned long long *out) {
	ENTER_GPU(device);
	return leave(errors(g, kind, counter, out));
}

int nvmlDeviceGetMemoryErrorCounter(void *device, unsigned kind, unsigned counter, unsigned place, unsigned long long *out) {
	ENTER_GPU(device);
	code = place > 7 ? INVALID_ARGUMENT : errors(g, kind, counter, out);
	if (!code && place != 2) *out = 0; // all errors are in the device memory
	return leave(code);
}

// half splits a count by cause: the smaller half is for corrected errors.
static unsigned half(const struct gpu *g, enum quantity q, int uncorrected) {
	unsigned all = (unsigned)(int64_t)g->is[q];
	return g->garbage ? BAD(g) : uncorrected ? all - all / 2 : all / 2;
}

int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
	ENTER_GPU(device);
	if (isnan(g->is[ROWS_REMAPPED])) return leave(NOT_SUPPORTED);
	*corrected = half(g, ROWS_REMAPPED, 0), *uncorrected = half(g, ROWS_REMAPPED, 1);
	*pending = g->is[REPAIR_PENDING] > 0, *failed = g->is[REPAIR_FAILED] > 0;
	return leave(SUCCESS);
}

// pages returns the retired pages of one cause. Garbage is in the addresses: a garbage count would make the caller
// allocate too much memory.
static int pages(const struct gpu *g, unsigned cause, unsigned *count, unsigned long long *at, unsigned long long *when) {
	if (cause > 1) return INVALID_ARGUMENT;
	if (isnan(g->is[PAGES_RETIRED])) return NOT_SUPPORTED;
	unsigned room = *count;
	*count = half(g, PAGES_RETIRED, (int)cause);
	if (g->garbage) *count = MAX_PAGES;
	if (!room) return *count ? INSUFFICIENT_SIZE : SUCCESS;
	if (room < *count || !at) return INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < *count; i++) {
		at[i] = g->garbage ? BAD(g) : (i * 2ull + cause + 1) << 16;
		if (when) when[i] = 1700000000000000ull + i;
	}
	return SUCCESS;
}

int nvmlDeviceGetRetiredPages(void *device, unsigned cause, unsigned *count, unsigned long long *at) {
	ENTER_GPU(device);
	return leave(pages(g, cause, count, at, NULL));
}

int nvmlDeviceGetRetiredPages_v2(void *device, unsigned cause, unsigned *count, unsigned long long *at, unsigned long long *when) {
	ENTER_GPU(device);
	return leave(pages(g, cause, count, at, when));
}
