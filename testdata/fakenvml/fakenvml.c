// A stand-in for libnvidia-ml.so.1: what a program asks NVML is answered from a text file that any process may rewrite
// while it runs. README.md says what the file may hold. Only the functions that Stallspan calls are there, and a few that
// it must not; their types follow NVIDIA's documents, with handles as plain pointers. This file holds what the others
// share; they are parts of it, and are compiled with it alone.
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
	SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, TIMEOUT = 10,
	LOST = 15, NO_MEMORY = 20, VERSION_MISMATCH = 25
};
enum { TICK_US = 10000, LINKS = 18, LATENCY_US = 3, MOST_PAGES = 64 };
#define GARBAGE 808334905u

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
