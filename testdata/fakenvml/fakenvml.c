// A stand-in for libnvidia-ml.so.1, which plays a text file that any process can rewrite while it runs. README.md
// describes the file. It has the functions that Stallspan calls, and a few that it must not call. Their types follow
// NVIDIA's documentation, with handles as plain pointers. This file has what the others share; it includes them, and
// only this file is compiled.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, TIMEOUT = 10,
	LOST = 15, NO_MEMORY = 20, VERSION_MISMATCH = 25
};
enum { TICK_US = 10000, LINKS = 18, LATENCY_US = 3, MAX_PAGES = 64 };
#define GARBAGE 808334905u
// What a GPU answers that returns impossible values, or ones only.
#define BAD(g) ((g)->garbage == 2 ? ~0u : GARBAGE)
#define BAD64(g) ((g)->garbage == 2 ? ~0ull : 1ull << 63)

#include "world.c"
#include "play.c"
#include "call.c"
#include "session.c"
#include "device.c"
#include "health.c"
#include "fields.c"
#include "gpm.c"
#include "events.c"
#include "mig.c"
