// Trains on random rows of a large file: with a pool of threads, or with io_uring in one thread.
//
// Usage: blocks FILE ROWS SIZE THREADS BATCH STEP [COPY]. THREADS is 0 for io_uring. Rows have SIZE bytes. With COPY,
// the first epoch reads FILE with O_DIRECT, and the others read COPY, which is in memory.
#include "truth.h"
#include <linux/io_uring.h>
#include <math.h>
#include <pthread.h>

enum { epochs = 3, slots = 64 };

static int file, rows, size, threads, batch, *order;
static double step;

// work is what a row costs: some passes over its numbers.
static float work(const float *row) {
	float sum = 0;
	for (int pass = 0; pass < 4; pass++)
		for (int i = 0; i < size / 4; i++)
			sum += sqrtf(fabsf(row[i]) + pass);
	return sum;
}

// The rows that are ready, in a bounded queue.
static struct {
	pthread_mutex_t lock;
	pthread_cond_t filled, emptied;
	int next, count;
	int by[slots]; // the threads that made them
	int head;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER, .emptied = PTHREAD_COND_INITIALIZER};

static void read_row(int row, void *into) {
	int64_t waited = ready(), start = now();
	if (pread(file, into, size, (off_t)row * size) != size)
		fail("pread");
	int64_t end = now();
	record("read", start, end, "%d:%lld", size, (long long)(ready() - waited));
}

static void *reader(void *number) {
	char name[16];
	void *row;
	int self = (int)(intptr_t)number;
	snprintf(name, sizeof name, "reader%d", self);
	thread_name = name;
	if (posix_memalign(&row, 4096, size))
		fail("memory");
	for (;;) {
		pthread_mutex_lock(&queue.lock);
		int mine = queue.next++;
		pthread_mutex_unlock(&queue.lock);
		if (mine >= rows / batch * batch)
			break;
		read_row(order[mine], row);
		volatile float sum = work(row);
		(void)sum;
		pthread_mutex_lock(&queue.lock);
		int64_t start = now();
		while (queue.count == slots)
			pthread_cond_wait(&queue.emptied, &queue.lock);
		if (now() - start > 20000)
			record("other", start, now(), "queue");
		queue.by[(queue.head + queue.count++) % slots] = self;
		pthread_cond_signal(&queue.filled);
		pthread_mutex_unlock(&queue.lock);
	}
	free(row);
	return NULL;
}

static void take(void) {
	pthread_mutex_lock(&queue.lock);
	int64_t start = now();
	while (queue.count == 0)
		pthread_cond_wait(&queue.filled, &queue.lock);
	int64_t end = now();
	int by = queue.by[queue.head];
	queue.head = (queue.head + 1) % slots;
	queue.count--;
	pthread_cond_signal(&queue.emptied);
	pthread_mutex_unlock(&queue.lock);
	record("wait", start, end, "reader%d", by);
}

static void with_threads(struct gpu *gpu) {
	pthread_t pool[64];
	queue.next = 0;
	for (intptr_t i = 0; i < threads; i++)
		if (pthread_create(&pool[i], NULL, reader, (void *)i))
			fail("thread");
	for (int b = 0; b < rows / batch; b++) {
		for (int i = 0; i < batch; i++)
			take();
		run_gpu(gpu, step);
	}
	for (int i = 0; i < threads; i++)
		pthread_join(pool[i], NULL);
}

static struct {
	int fd;
	struct io_uring_sqe *entries;
	struct io_uring_cqe *done;
	unsigned *tail, *mask, *array, *done_head, *done_tail, *done_mask;
} ring;

static void *map_ring(size_t length, off_t what) {
	return mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, what);
}

static void open_ring(void) {
	struct io_uring_params p = {0};
	if ((ring.fd = syscall(SYS_io_uring_setup, 64, &p)) < 0)
		fail("io_uring_setup");
	char *s = map_ring(p.sq_off.array + p.sq_entries * 4, IORING_OFF_SQ_RING);
	char *c = map_ring(p.cq_off.cqes + p.cq_entries * sizeof *ring.done, IORING_OFF_CQ_RING);
	ring.entries = map_ring(p.sq_entries * sizeof *ring.entries, IORING_OFF_SQES);
	ring.tail = (unsigned *)(s + p.sq_off.tail), ring.mask = (unsigned *)(s + p.sq_off.ring_mask);
	ring.array = (unsigned *)(s + p.sq_off.array), ring.done = (struct io_uring_cqe *)(c + p.cq_off.cqes);
	ring.done_head = (unsigned *)(c + p.cq_off.head), ring.done_tail = (unsigned *)(c + p.cq_off.tail);
	ring.done_mask = (unsigned *)(c + p.cq_off.ring_mask);
}

// read_batch submits all reads of a batch and waits for them.
static void read_batch(const int *chosen, char *into) {
	int64_t waited = ready(), start = now();
	unsigned tail = *ring.tail;
	for (int i = 0; i < batch; i++, tail++) {
		unsigned at = tail & *ring.mask;
		ring.entries[at] = (struct io_uring_sqe){
			.opcode = IORING_OP_READ,
			.fd = file,
			.addr = (uintptr_t)(into + (size_t)i * size),
			.len = size,
			.off = (uint64_t)chosen[i] * size,
		};
		ring.array[at] = at;
	}
	__atomic_store_n(ring.tail, tail, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring.fd, batch, batch, IORING_ENTER_GETEVENTS, NULL, 0) != batch)
		fail("io_uring_enter");
	for (unsigned head = *ring.done_head; head != __atomic_load_n(ring.done_tail, __ATOMIC_ACQUIRE); head++) {
		if (ring.done[head & *ring.done_mask].res != size)
			fail("a read of io_uring");
		__atomic_store_n(ring.done_head, head + 1, __ATOMIC_RELEASE);
	}
	int64_t end = now();
	record("read", start, end, "%d:%lld", batch * size, (long long)(ready() - waited));
}

static void with_ring(struct gpu *gpu) {
	char *all;
	if (posix_memalign((void **)&all, 4096, (size_t)batch * size))
		fail("memory");
	for (int b = 0; b < rows / batch; b++) {
		read_batch(order + b * batch, all);
		volatile float sum = 0;
		for (int i = 0; i < batch; i++)
			sum += work((float *)(all + (size_t)i * size));
		run_gpu(gpu, step);
	}
	free(all);
}

int main(int count, char **args) {
	struct gpu gpu;
	struct window w;
	if (count < 7)
		return fprintf(stderr, "usage: blocks FILE ROWS SIZE THREADS BATCH STEP [COPY]\n"), 2;
	const char *copy = args[7];
	rows = atoi(args[2]), size = atoi(args[3]), threads = atoi(args[4]), batch = atoi(args[5]), step = atof(args[6]);
	if ((file = open(args[1], O_RDONLY | (copy ? O_DIRECT : 0))) < 0)
		fail(args[1]);
	order = malloc(rows * sizeof *order);
	for (int i = 0; i < rows; i++) { // shuffled in the same way in each epoch
		int other = rand() % (i + 1);
		order[i] = order[other], order[other] = i;
	}
	open_gpu(&gpu);
	if (threads == 0)
		open_ring();
	for (int epoch = 0; epoch < epochs; epoch++) {
		if (epoch == 1 && copy && (file = open(copy, O_RDONLY)) < 0)
			fail(copy);
		begin_window(&w, epoch);
		threads ? with_threads(&gpu) : with_ring(&gpu);
		end_window(&w);
	}
	return 0;
}
