// The session with the driver, and functions about all GPUs.

static void reset_events(void); // events.c
static void reset_gpm(void);    // gpm.c

static int node = -1; // the file FAKENVML_NODE, which a session has open as the driver's has /dev/nvidia0

int nvmlInit_v2(void) {
	ENTER();
	if (world.init_error) return leave(world.init_error);
	if (sessions++) return leave(SUCCESS);
	for (int i = 0; i < MAX_GPUS; i++) {
		if (*players[i].opened) close(players[i].kernels);
	}
	if (getenv("FAKENVML_NODE")) node = open(getenv("FAKENVML_NODE"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	memset(players, 0, sizeof players);
	for (int i = 0; i < MAX_GPUS; i++) players[i].counted_ns = -1;
	session_began_us = played_us = period_began_us = checked_us = now_us(CLOCK_MONOTONIC);
	if (world.late_us || world.report_us) { // a driver has samples from before, and reports them at once
		played_us = period_began_us -= world.late_us + world.report_us + world.period_us;
	}
	if (!pthread_create(&thread, NULL, run, (void *)++threads))
		pthread_setname_np(thread, "fakenvml"); // so that measurements can leave it out: a driver has no such thread
	return leave(SUCCESS);
}

int nvmlShutdown(void) {
	ENTER();
	if (--sessions) return leave(SUCCESS);
	pthread_t last = thread;
	pthread_cond_broadcast(&stop);
	reset_events();
	reset_gpm();
	leave(SUCCESS);
	pthread_join(last, NULL);
	if (node >= 0) close(node);
	node = -1;
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
	int code = enter(i < MAX_GPUS ? (int)i : MAX_GPUS, __func__);
	if (code) return code;
	*device = handle((int)i, -1);
	return leave(SUCCESS);
}
