// Counts how long the operations of block devices take, in buckets. docs/internals/latency.md describes the design.
//
// SPDX-License-Identifier: GPL-2.0-only OR MIT

#pragma once

#include "report.bpf.h"

// Sizes that latency.go repeats.
enum {
	BUCKETS = 120,
	BOUNDS = 128, // a power of two above BUCKETS: the rest is never reached
	CELLS = 256,
	JOB_CELLS = 192, // cells from here on are for devices alone
	SHARDS = 8,
	STARTED = 8192, // operations of jobs in flight
	LOOKS = 8, // cells that an operation without one looks at
};

// What an operation does. The first two are those of the kernel's enum req_op.
enum {
	READ,
	WRITE,
	FLUSH,
	DISCARD,
	NO_OPERATION,
};

// The kernel notes the start of a request shortly before or after it calls on_start, in ns. What is later belongs to
// another operation: after a merge, a request is used again without an end.
#define SAME_START 1000000

// One histogram, or the part of it that some CPUs count.
struct cell {
	u64 sum;  // ns
	u64 zero; // operations that took at most bounds[0]
	u64 unused[6];
	u64 counts[BUCKETS]; // counts[i]: above bounds[i], at most bounds[i + 1]; the last without an end
};

// What a histogram is of. A device is what MKDEV makes of its numbers. A key is stored as one number, because user space
// reads it meanwhile.
union key {
	struct {
		u32 device;
		u16 job; // a slot of the scheduler's jobs; 0 for all programs together
		u16 operation;
	};
	u64 all;
};

// The directory of cells, for user space.
struct directory {
	u64 used;    // cells
	u64 refused; // operations without a cell
	u64 jobs;    // operations of jobs that were seen to start
	u64 hand;    // the cell that is looked at next to find one that is free
	union key keys[CELLS];
};

struct started {
	u64 at; // ns on CLOCK_MONOTONIC
	u32 slot;
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, CELLS * SHARDS);
	__type(key, u32);
	__type(value, struct cell);
} cells SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct directory);
} directory SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CELLS);
	__type(key, union key);
	__type(value, u32);
} places SEC(".maps");

// The operations of followed jobs, by request. Requests that are merged into others never complete.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, STARTED);
	__type(key, u64);
	__type(value, struct started);
} started SEC(".maps");

// Values that the loader sets. In ns: the longest time of each bucket, bounds[0] that of zero. The places after the
// last are never exceeded.
const volatile u64 bounds[BOUNDS];
const volatile u32 with_jobs; // the operations of jobs are noted
const volatile u32 io_stat = 1 << 8, flush_seq = 1 << 1; // of request.rq_flags: it is counted; it is a part of a flush

// Reports whether the kernel counts a request in /proc/diskstats, as blk_do_io_stat does.
static __always_inline int counted(const struct request *rq)
{
	if ((rq->cmd_flags & REQ_OP_MASK) == REQ_OP_FLUSH)
		return 1; // the kernel's own request, which has no such bit
	return (rq->rq_flags & (io_stat | flush_seq)) == io_stat;
}

static __always_inline u32 operation_of(const struct request *rq)
{
	u32 op = rq->cmd_flags & REQ_OP_MASK;

	if (op == REQ_OP_FLUSH)
		return FLUSH;
	if (op == REQ_OP_DISCARD)
		return DISCARD;
	return op & 1; // as op_stat_group: secure erase, zone appends and the like are writes
}

static __always_inline u32 device_of(const struct request *rq)
{
	struct gendisk *disk = rq->q->disk;

	return disk ? (u32)disk->major << 20 | (u32)disk->first_minor : 0;
}

// Returns how many bounds a time exceeds. It has no branches: the kernel's check of a program goes each way of each. Both
// numbers are below 2^63, so that their difference is negative if the time is larger.
static __always_inline u32 bucket_of(u64 ns)
{
	u64 n = 0, step, at;

#pragma unroll
	for (step = BOUNDS / 2; step; step /= 2) {
		at = n + step - 1;
		barrier_var(at); // the mask stays: before Linux 6.8 the kernel's check does not see the range of a sum
		n += step * ((bounds[at & (BOUNDS - 1)] - ns) >> 63);
	}
	return n;
}

// Gives a histogram a place that is free.
static __always_inline void put(const union key *key, u32 at, struct directory *d)
{
	if (!bpf_map_update_elem(&places, key, &at, BPF_NOEXIST))
		*(volatile u64 *)&d->keys[at & (CELLS - 1)].all = key->all;
}

// Takes the place of a job that has ended. The counts remain: user space subtracts what was there.
static __always_inline void reuse(const union key *key, struct directory *d)
{
	union key old;
	struct job *job;
	u32 i, at, slot;

	if (!with_jobs)
		return;
	for (i = 0; i < LOOKS; i++) {
		at = __sync_fetch_and_add(&d->hand, 1) & (CELLS - 1);
		if (at >= JOB_CELLS)
			continue;
		old.all = *(volatile u64 *)&d->keys[at & (CELLS - 1)].all;
		slot = old.job;
		if (!slot)
			continue;
		job = bpf_map_lookup_elem(&jobs, &slot);
		if (!job || job->generation || bpf_map_delete_elem(&places, &old))
			continue; // only one CPU can delete it
		put(key, at, d);
		return;
	}
}

// Gives a histogram its place. Many CPUs may do so at a time: then a cell remains unused.
static __always_inline u32 *new_cell(const union key *key, struct directory *d)
{
	u32 limit = key->job ? JOB_CELLS : CELLS;
	u32 at = limit;

	if (d->used < limit) {
		at = __sync_fetch_and_add(&d->used, 1);
		if (at >= limit)
			__sync_fetch_and_add(&d->used, -1);
	}
	if (at < limit)
		put(key, at, d);
	else
		reuse(key, d);
	return bpf_map_lookup_elem(&places, key);
}

static __always_inline void count(u32 device, u32 operation, u32 job, u64 ns, u32 bucket, struct directory *d)
{
	union key key = {.device = device, .job = job, .operation = operation};
	u32 *at = bpf_map_lookup_elem(&places, &key);
	struct cell *cell;
	u32 place;

	if (!at)
		at = new_cell(&key, d);
	if (!at) {
		__sync_fetch_and_add(&d->refused, 1);
		return;
	}
	place = *at * SHARDS + (bpf_get_smp_processor_id() & (SHARDS - 1));
	cell = bpf_map_lookup_elem(&cells, &place);
	if (!cell)
		return;
	__sync_fetch_and_add(&cell->sum, ns);
	if (!bucket) {
		__sync_fetch_and_add(&cell->zero, 1);
		return;
	}
	bucket--;
	if (bucket >= BUCKETS)
		bucket = BUCKETS - 1;
	__sync_fetch_and_add(&cell->counts[bucket], 1);
}

static __always_inline struct directory *the_directory(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&directory, &zero);
}

// A request, or a part of one, has completed.
SEC("tp_btf/block_rq_complete")
int on_complete(u64 *ctx)
{
	struct request *rq = (struct request *)ctx[0];
	u64 start = rq->start_time_ns, pointer = (u64)rq, now, ns;
	u32 device, operation, bucket, slot = 0;
	struct directory *d;
	struct started *of;

	if ((u32)ctx[2] < rq->__data_len || !start || !counted(rq))
		return 0;
	device = device_of(rq);
	d = the_directory();
	if (!device || !d)
		return 0;
	now = bpf_ktime_get_ns();
	ns = now > start ? (now - start) & ~(1ULL << 63) : 0;
	operation = operation_of(rq);
	bucket = bucket_of(ns);
	if (with_jobs && d->jobs) {
		of = bpf_map_lookup_elem(&started, &pointer);
		if (of) {
			if (start < of->at + SAME_START)
				slot = of->slot;
			bpf_map_delete_elem(&started, &pointer);
		}
	}
	count(device, operation, 0, ns, bucket, d);
	if (slot)
		count(device, operation, slot, ns, bucket, d);
	return 0;
}

// Notes for which job an operation is, if the current thread is followed.
static __always_inline void note(const struct request *rq)
{
	struct thread *th = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	struct directory *d = the_directory();
	struct started new = {};
	u64 pointer = (u64)rq;

	if (!th || !job_of(th) || !d)
		return; // as nearly all operations of the machine
	new.at = bpf_ktime_get_ns();
	new.slot = th->slot;
	if (!bpf_map_update_elem(&started, &pointer, &new, BPF_ANY))
		d->jobs = 1;
}

// A request was made, by the thread that asks for it. Linux 6.5 and later.
SEC("tp_btf/block_io_start")
int on_start(u64 *ctx)
{
	note((struct request *)ctx[0]);
	return 0;
}

// A request goes to the I/O scheduler, mostly by the thread that asks for it.
SEC("tp_btf/block_rq_insert")
int on_insert(u64 *ctx)
{
	note((struct request *)ctx[0]);
	return 0;
}

// A request goes to the device, without an I/O scheduler mostly by the thread that asks for it.
SEC("tp_btf/block_rq_issue")
int on_issue(u64 *ctx)
{
	note((struct request *)ctx[0]);
	return 0;
}
