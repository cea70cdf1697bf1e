// GPUs with MIG devices, called slices here.

int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) {
	ENTER_GPU(device);
	*current = *pending = (unsigned)mig_enabled(g);
	return leave(isnan(g->is[MIG]) ? NOT_SUPPORTED : SUCCESS);
}

int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count) {
	ENTER_GPU(device);
	*count = mig_enabled(g) ? MAX_SLICES : 0;
	return leave(SUCCESS);
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned i, void **out) {
	ENTER_GPU(device);
	if (!mig_enabled(g)) return leave(NOT_SUPPORTED);
	if (i >= MAX_SLICES) return leave(INVALID_ARGUMENT);
	if (i >= (unsigned)g->slices) return leave(NOT_FOUND);
	*out = handle(index, (int)i);
	return leave(SUCCESS);
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *device, void **out) {
	ENTER_ANY(device);
	*out = handle(index, -1);
	return leave(s ? SUCCESS : INVALID_ARGUMENT);
}

int nvmlDeviceIsMigDeviceHandle(void *device, unsigned *out) {
	ENTER_ANY(device);
	*out = s != NULL;
	return leave(SUCCESS);
}

int nvmlDeviceGetGpuInstanceId(void *device, unsigned *out) {
	ENTER_ANY(device);
	if (s) *out = s->instance;
	return leave(s ? SUCCESS : NOT_SUPPORTED);
}

int nvmlDeviceGetComputeInstanceId(void *device, unsigned *out) {
	ENTER_ANY(device);
	if (s) *out = s->compute_instance;
	return leave(s ? SUCCESS : NOT_SUPPORTED);
}

struct attributes { // nvmlDeviceAttributes_t
	unsigned processors, copy_engines, decoders, encoders, jpeg, ofa, gpu_slices, compute_slices;
	unsigned long long mebibytes;
};

int nvmlDeviceGetAttributes_v2(void *device, struct attributes *out) {
	ENTER_ANY(device);
	if (!s) return leave(NOT_SUPPORTED);
	*out = (struct attributes){.processors = 16, .copy_engines = 1, .decoders = 1, .gpu_slices = 1, .compute_slices = 1,
		.mebibytes = s->memory_total >> 20};
	return leave(SUCCESS);
}
