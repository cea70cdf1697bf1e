// What truth.py does, for programs in C. truth.py describes the log.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static __thread const char *thread_name = "main";

static void fail(const char *what) {
	perror(what);
	exit(1);
}

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void record(const char *kind, int64_t start, int64_t end, const char *format, ...) {
	static int file = -1;
	char path[4096], line[256];
	if (file < 0) { // the first line is written before there are threads
		snprintf(path, sizeof path, "%s/%d.log", getenv("JOBS_LOG"), getpid());
		if ((file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644)) < 0)
			fail(path);
	}
	int n = snprintf(line, sizeof line, "%s %s %lld %lld ", thread_name, kind, (long long)start, (long long)end);
	va_list arguments;
	va_start(arguments, format);
	n += vsnprintf(line + n, sizeof line - n, format, arguments);
	va_end(arguments);
	line[n++] = '\n';
	if (write(file, line, n) != n)
		fail("log");
}

// ready returns how long the calling thread has been ready without a core, in nanoseconds.
static int64_t ready(void) {
	static __thread int file = -1;
	char text[80] = "";
	long long ran, waited = 0;
	if (file < 0)
		file = open("/proc/thread-self/schedstat", O_RDONLY);
	if (pread(file, text, sizeof text - 1, 0) <= 0 || sscanf(text, "%lld %lld", &ran, &waited) != 2)
		fail("schedstat");
	return waited;
}

static void machine(void) {
	long long sectors = 0, t[8];
	const char *device = getenv("JOBS_DEVICE");
	if (device && *device) {
		char path[256];
		snprintf(path, sizeof path, "/sys/block/%s/stat", device);
		FILE *f = fopen(path, "r");
		if (!f || fscanf(f, "%*s %*s %lld", &sectors) != 1)
			fail(path);
		fclose(f);
	}
	FILE *f = fopen("/proc/stat", "r");
	if (!f || fscanf(f, "cpu"))
		fail("/proc/stat");
	for (int i = 0; i < 8; i++)
		if (fscanf(f, "%lld", &t[i]) != 1)
			fail("/proc/stat");
	fclose(f);
	struct rusage own;
	getrusage(RUSAGE_SELF, &own);
	long long ticks = (own.ru_utime.tv_sec + own.ru_stime.tv_sec) * 100;
	ticks += (own.ru_utime.tv_usec + own.ru_stime.tv_usec) / 10000;
	record("machine", now(), 0, "%lld:%lld:%lld:%lld", sectors, t[7], t[0] + t[1] + t[2] + t[5] + t[6], ticks);
}

// request sends a POST to stallspan's socket; id gets the id in the answer, if it is not NULL.
static void request(const char *path, const char *body, char *id) {
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	char text[4096];
	snprintf(to.sun_path, sizeof to.sun_path, "%s", getenv("STALLSPAN_SOCKET"));
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	if (s < 0 || connect(s, (struct sockaddr *)&to, sizeof to))
		fail(to.sun_path);
	int n = snprintf(text, sizeof text, "POST %s HTTP/1.0\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
		path, strlen(body), body);
	if (write(s, text, n) != n)
		fail("request");
	size_t got = 0;
	for (ssize_t k; got < sizeof text - 1 && (k = read(s, text + got, sizeof text - 1 - got)) > 0;)
		got += k;
	text[got] = 0;
	close(s);
	char *found = strstr(text, "\"id\":\"");
	if (strncmp(text, "HTTP/1.0 2", 10) || (id && (!found || sscanf(found + 6, "%63[^\"]", id) != 1))) {
		fprintf(stderr, "%s: %s\n", path, text);
		exit(1);
	}
}

struct window {
	int label;
	int64_t start;
	char id[64];
};

static void begin_window(struct window *w, int label) {
	char body[80];
	machine();
	w->label = label;
	snprintf(body, sizeof body, "{\"kind\":\"epoch\",\"epoch\":%d}", label);
	request("/v1/windows", body, w->id);
	w->start = now();
}

static void end_window(struct window *w) {
	char path[128];
	record("window", w->start, now(), "%d:%s", w->label, w->id);
	snprintf(path, sizeof path, "/v1/windows/%s/end", w->id);
	request(path, "{}", NULL);
	machine();
}

struct gpu {
	int file;
	volatile int64_t *state; // version, done, start, end
};

static void open_gpu(struct gpu *g) {
	char path[4096];
	snprintf(path, sizeof path, "%s/0", getenv("JOBS_GPUS"));
	if ((g->file = open(path, O_RDWR)) < 0)
		fail(path);
	g->state = mmap(NULL, 32, PROT_READ | PROT_WRITE, MAP_SHARED, g->file, 0);
	prctl(PR_SET_TIMERSLACK, 1); // a GPU wakes its thread by an interrupt
}

// run_gpu queues a kernel and waits until it is done.
static void run_gpu(struct gpu *g, double seconds) {
	int64_t begun = now(), end;
	volatile int64_t *s = g->state;
	__atomic_add_fetch(&s[0], 1, __ATOMIC_SEQ_CST);
	if (begun >= s[3])
		s[1] += s[3] - s[2], s[2] = s[3] = begun;
	begun = s[3];
	end = s[3] = begun + (int64_t)(seconds * 1e9);
	__atomic_add_fetch(&s[0], 1, __ATOMIC_SEQ_CST);
	record("busy", begun, end, "0");
	struct timespec until = {end / 1000000000, end % 1000000000};
	int64_t start = now();
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
	record("gpu", start, now(), "-");
}
