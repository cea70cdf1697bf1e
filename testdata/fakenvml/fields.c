// Field values, many in one call.

union number { double d; int i; unsigned u; unsigned long long l; };

// The layout of nvmlFieldValue_t. The types of a value are 1 for unsigned int, 3 for unsigned long long
// and 5 for int.
struct field { unsigned id, scope; long long at_us, latency_us; unsigned type, code; union number value; };

static void set_unsigned(struct field *f, const struct gpu *g, double value) {
	f->type = 1;
	f->code = isnan(value) ? NOT_SUPPORTED : SUCCESS;
	if (!f->code) f->value.u = g->garbage ? BAD(g) : (unsigned)(int64_t)value;
}

// set_limit sets the margin, as of nvmlDeviceGetMarginTemperature, at which a limit is reached.
static void set_limit(struct field *f, const struct gpu *g, enum quantity q) {
	f->type = 5;
	f->code = isnan(g->is[q]) || isnan(g->is[SLOWDOWN_AT]) ? NOT_SUPPORTED : SUCCESS;
	if (!f->code) f->value.i = g->garbage ? (int)BAD(g) : (int)g->is[SLOWDOWN_AT] - (int)g->is[q];
}

static void set_long(struct field *f, const struct gpu *g, enum quantity q, double value) {
	f->type = 3;
	f->code = isnan(g->is[q]) ? NOT_SUPPORTED : SUCCESS;
	if (!f->code) f->value.l = g->garbage ? BAD64(g) : (unsigned long long)value;
}

// counter_bytes returns the bytes of a direction: the value in the file, or the sum over time.
static uint64_t counter_bytes(const struct gpu *g, int index, enum quantity q) {
	return g->counter[q].fixed ? g->counter[q].value : (uint64_t)players[index].sum[q];
}

static void set_pcie(struct field *f, const struct gpu *g, int index, enum quantity q) {
	set_long(f, g, q, 0);
	if (f->code || g->garbage) return;
	uint64_t bytes = counter_bytes(g, index, q);
	if (g->is[PCIE_COUNTER_BITS] == 64) f->value.l = bytes;
	else f->type = 1, f->value.l = 0, f->value.u = (unsigned)bytes;
}

// set_nvlink sets a counter in KiB, of one link or of all. The first link has the remainder.
static void set_nvlink(struct field *f, const struct gpu *g, int index, enum quantity q) {
	set_long(f, g, q, 0);
	if (f->code || g->garbage) return;
	uint64_t all = counter_bytes(g, index, q) / 1024;
	if (f->scope == ~0u) f->value.l = all;
	else if (f->scope < LINKS) f->value.l = all / LINKS + (f->scope ? 0 : all % LINKS);
	else f->code = INVALID_ARGUMENT;
}

static void set_throttle_time(struct field *f, const struct gpu *g, int index, enum quantity q) {
	set_long(f, g, q, players[index].sum[q] / 100 * 1e9);
}

static void set_half(struct field *f, const struct gpu *g, enum quantity q, int uncorrected) {
	set_unsigned(f, g, isnan(g->is[q]) ? g->is[q] : half(g, q, uncorrected));
}

static void set_field(struct field *f, const struct gpu *g, int index) {
	const double *is = g->is;
	switch (f->id) {
	case 1: case 2: set_unsigned(f, g, isnan(is[ERRORS_CORRECTED]) ? is[ERRORS_CORRECTED] : 1); return; // ECC is on
	case 3: case 5: set_long(f, g, ERRORS_CORRECTED, is[ERRORS_CORRECTED]); return;
	case 4: case 6: set_long(f, g, ERRORS_UNCORRECTED, is[ERRORS_UNCORRECTED]); return;
	case 29: case 30: set_half(f, g, PAGES_RETIRED, f->id == 30); return;
	case 31: set_unsigned(f, g, isnan(is[PAGES_RETIRED]) ? is[PAGES_RETIRED] : is[REPAIR_PENDING] > 0); return;
	case 74: set_throttle_time(f, g, index, THROTTLED_POWER); return;
	case 75: case 269: set_throttle_time(f, g, index, THROTTLED_THERMAL); return;
	case 76: set_throttle_time(f, g, index, THROTTLED_SYNC_BOOST); return;
	case 77: set_throttle_time(f, g, index, THROTTLED_BOARD); return;
	case 79: set_throttle_time(f, g, index, THROTTLED_RELIABILITY); return;
	case 270: set_throttle_time(f, g, index, THROTTLED_HW_THERMAL); return;
	case 271: set_throttle_time(f, g, index, THROTTLED_POWER_BRAKE); return;
	case 82: set_unsigned(f, g, is[TEMPERATURE_MEMORY]); return;
	case 83: case 191: f->type = 3, f->code = SUCCESS, f->value.l = millijoules(g, index); return;
	case 91: set_unsigned(f, g, isnan(is[NVLINK_RECEIVED]) ? 0 : LINKS); return;
	case 94: set_unsigned(f, g, is[PCIE_REPLAYS]); return;
	case 138: set_nvlink(f, g, index, NVLINK_SENT); return;
	case 139: set_nvlink(f, g, index, NVLINK_RECEIVED); return;
	case 142: case 143: set_half(f, g, ROWS_REMAPPED, f->id == 143); return;
	case 144: set_unsigned(f, g, isnan(is[ROWS_REMAPPED]) ? is[ROWS_REMAPPED] : is[REPAIR_PENDING] > 0); return;
	case 145: set_unsigned(f, g, isnan(is[ROWS_REMAPPED]) ? is[ROWS_REMAPPED] : is[REPAIR_FAILED] > 0); return;
	case 185: case 186: set_unsigned(f, g, g->power * 1000); return; // mean of the last second, and current
	case 190: case 192: set_unsigned(f, g, is[POWER_LIMIT] * 1000); return;
	case 193: set_limit(f, g, SHUTDOWN_AT); return;
	case 194: set_limit(f, g, SLOWDOWN_AT); return;
	case 197: set_pcie(f, g, index, PCIE_SENT); return;
	case 198: set_pcie(f, g, index, PCIE_RECEIVED); return;
	}
}

int nvmlDeviceGetFieldValues(void *device, int count, struct field *fields) {
	ENTER_GPU(device);
	if (count < 1 || !fields) return leave(INVALID_ARGUMENT);
	long long at_us = now_us(CLOCK_REALTIME);
	for (int i = 0; i < count; i++) {
		struct field *f = &fields[i];
		*f = (struct field){.id = f->id, .scope = f->scope, .at_us = at_us, .latency_us = LATENCY_US, .code = NOT_SUPPORTED};
		int code = part_code(index, (int)f->id, -1);
		if (code) f->code = (unsigned)code;
		else set_field(f, g, index);
	}
	return leave(SUCCESS);
}
