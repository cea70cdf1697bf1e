// The settings of the programs, what they keep of threads and jobs, their records and maps.
//
// SPDX-License-Identifier: GPL-2.0-only OR MIT

#pragma once

#include "kernel.bpf.h"

// Values that the loader sets.
volatile const u32 preempt_known;     // preempt_offset is valid
volatile const s64 preempt_offset;    // of the CPU's preempt count from its run queue
volatile const u32 switch_has_state;  // sched_switch has a fourth argument prev_state, as since Linux 5.18
volatile const u32 own_space;         // inode of the network namespace of user space; 0 if it is not known
volatile const u32 can_exchange;      // atomic operations that return a value: Linux 5.18 on arm64
volatile const u32 faults_seen;       // on_fault and on_mapped are attached
volatile const u64 job_budget = 5000; // events of a job that are reported in a budget window
volatile const u64 merge_budget = 1250; // the same, reported or not: above it, waits for storage are merged
volatile const u64 all_budget = 20000;

#define BUDGET_WINDOW 100000000ULL /* ns */
#define BUSY_THREAD 20             /* events in a window from which a thread is summed if its job is over budget */
#define MERGE_LENGTH 1000000ULL    /* ns after which a sum of waits for storage ends as the thread leaves its CPU */
#define ROUND 2                    /* events of a thread that leaves its CPU and comes back */
#define SUM_LENGTH 20000000ULL     /* ns after which another sum ends as the thread leaves its CPU */
#define LONG_PAUSE 10000000ULL     /* ns of a pause after which flush ends a sum */
#define NAMED_PAUSE 1000000ULL     /* ns of a pause from which the name of an unknown waker is reported */
#define EARLY_WAKE 50000ULL        /* ns by which a wake-up may come before the thread is off its CPU */
#define STEP_GAP 50000ULL          /* ns of running between two steps of fetching data, or from the last to the wait */

#define JOBS 80 /* MaxJobs of the Go package */

// As in package sample.
enum {
	BEGAN = 1,
	OUT,
	IN,
	SUM_OUT, // ThreadSum, ThreadIn and ThreadOut at one moment
	NAMED,
	FOUND,
	CONNECTION,
	SUM_IN, // ThreadSum and ThreadIn: the thread runs on
};
enum { READY, ASLEEP, BLOCKED, DEAD, STOPPED };
enum { NO_FILE, REGULAR, DIRECTORY, PIPE, SOCKET, CHAR_DEVICE, BLOCK_DEVICE, OTHER_FILE };
enum { NO_WAKER, USER_THREAD, KERNEL_THREAD, INTERRUPT, SOFTIRQ };

struct pause {
	s16 syscall;
	u16 family;
	u8 state;
	u8 file;
	u8 iowait;
	u8 several; // it waits for one of several files, which detail and address are for
	u64 detail;
	u8 address[16];
};

#define CLAIMED 1ULL
#define MAYBE 2

struct waker {
	u32 tid;
	u32 pid;
	u32 kind;
};

// A followed thread. It is only changed in the thread's own switches, and woken and waker by who wakes it.
struct thread {
	u32 slot; // of jobs
	u32 generation;
	u32 tid;
	u32 creator;
	u8 reported; // that it is followed
	u8 running; // 0, 1, or MAYBE at first
	u8 early; // woken was noted before the thread was off its CPU
	u8 fetches; // the steps are proved to be for data that are not in memory
	struct waker waker;
	u64 since; // its last switch
	u64 woken; // first wake-up since then; 0 if none
	struct pause pause;

	u64 fetched, chars; // as far as they are reported
	u64 moved;          // both, as far as they are counted for the job
	u64 stolen_at; // when it got its CPU, of that CPU
	u64 stolen;    // ns, not yet reported
	u64 step_from, step; // the first and the newest step of fetching data that follow one another
	u64 fetching;        // time of such steps that is not reported yet

	u64 window; // number of the budget window
	u32 count;  // events in it
	u32 before; // and in the one before

	u64 from;  // start of the sum; 0 if its switches are reported one by one
	u8 merges; // the sum has waits for storage alone, and ends before anything else that others have to do with
	u64 claim; // in a pause of a sum: since; CLAIMED if flush has reported the sum; else 0
	u64 ran, ready, blocked, asleep;
	u64 longest;
	struct pause longest_pause;
	struct waker longest_waker;
	u32 named; // the last thread that woke it and is not followed
};

// The events of a job in a budget window. They are counted without a lock: an error costs a few events.
struct load {
	u64 window;
	u64 count;
	u64 over; // more events than the budget
};

// A job. Number 0 is all jobs together.
struct job {
	u32 generation; // 0: not in use
	u32 unused;
	struct load reported;
	struct load all; // with those that sums stand for
};

struct member {
	u32 slot;
	u32 generation;
};

struct head {
	u64 at; // ns on CLOCK_MONOTONIC
	u32 tid;
	u32 pid;
	u8 kind;
	u8 state; // of IN: the kind of the waker
	u8 file;
	u8 iowait;
	s16 syscall;
	u16 family; // of a socket, and its protocol in the upper half
};

struct began {
	struct head head;
	u32 slot;
	u32 generation;
	u32 creator;
	u32 unused;
	char name[16];
};

struct in {
	struct head head;
	u64 woken;
	u32 waker;
	u32 waker_pid;
};

struct out {
	struct head head;
	u64 detail; // of a socket: its port in the upper half
	u64 fetching; // ns
	u32 fetched;
	u32 chars;
	u8 address[16];
	u32 stolen; // us
	u32 unused;
};

struct named {
	struct head head;
	char name[16];
};

struct sum {
	struct out out; // with the last pause, which begins where the sum ends
	u64 from;
	u64 ran, ready, blocked, asleep; // ns
	struct pause longest;
	struct waker waker; // of the longest
	u32 unused;
};

// A TCP connection that a followed thread has opened.
struct opened {
	u32 slot;
	u32 generation;
	u64 reported; // when it was last reported; 0 before it is established
	u64 cookie;
	u32 space; // inode of its network namespace
	u32 unused;
};

// What a connection has moved. The head's state is that of the connection, and its pid 0.
struct connection {
	struct head head;
	u32 slot;
	u32 generation;
	u64 cookie;
	u64 received, sent; // bytes
	u32 messages, packets, out_of_order;
	u32 min_rtt; // us
	u32 window;  // bytes
	u32 device;  // that the socket is bound to
	u32 space;   // inode of its network namespace
	u16 local_port, remote_port;
	u8 local[16], remote[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64); // address of the socket
	__type(value, struct opened);
} connections SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, JOBS + 1);
	__type(key, u32);
	__type(value, struct job);
} jobs SEC(".maps");

// The thread groups whose threads are adopted by the next run of adopt.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct member);
} joining SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} events SEC(".maps");

struct counters {
	u64 lost;   // events without room
	u64 summed; // when a thread last began a pause in a sum
	u64 moved[JOBS + 1]; // bytes that the threads of each job read, by calls and from storage, when they last left a CPU
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counters);
} counters SEC(".maps");
