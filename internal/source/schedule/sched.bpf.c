//go:build ignore

// Follows the threads of jobs through the scheduler's tracepoints. docs/internals/schedule.md describes the design.
//
// SPDX-License-Identifier: GPL-2.0-only OR MIT

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

// Of the kernel's linux/bpf.h, whose own includes are in another folder on each architecture.
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1024,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
};

// The helpers for task storage and the ring buffer are for programs under a licence compatible with the GPL.
char LICENSE[] SEC("license") = "Dual MIT/GPL";

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s16 s16;
typedef __s64 s64;

// The parts of the kernel's structures that are read. The loader finds their places in the running kernel (CO-RE).
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	u32 i_rdev;
};

struct file {
	struct inode *f_inode;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct in6_addr {
	u8 bytes[16];
};

struct sock_common {
	__be32 skc_daddr;
	__be16 skc_dport;
	unsigned short skc_family;
	struct in6_addr skc_v6_daddr;
};

struct sock {
	struct sock_common __sk_common;
};

struct socket {
	struct sock *sk;
};

struct task_io_accounting {
	u64 rchar;
	u64 read_bytes;
};

struct arm64_preempt {
	u32 count;
};

struct thread_info {
	struct arm64_preempt preempt;
};

struct rq {
	int cpu;
};

struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct id {
	u32 val;
};

struct capabilities {
	u64 val;
};

struct cred {
	struct id uid, gid, suid, sgid, euid, egid;
	struct capabilities cap_permitted;
};

struct task_struct {
	struct sched_entity se;
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	int on_cpu;
	unsigned in_iowait : 1;
	int pid;
	int tgid;
	u64 utime;
	u64 stime;
	unsigned long nvcsw;
	unsigned long nivcsw;
	struct files_struct *files;
	struct task_io_accounting ioac;
	const struct cred *real_cred;
};

struct bpf_iter__task {
	struct task_struct *task;
};

struct pt_regs {
#if defined(__TARGET_ARCH_x86)
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
#elif defined(__TARGET_ARCH_arm64)
	u64 pc;
	u64 orig_x0;
	int syscallno;
#endif
};

#pragma clang attribute pop

#define HARDIRQ_MASK 0x00ff0000 /* with NMI */
#define SOFTIRQ_SERVING 0x00000100

// Values that the loader sets.
volatile const u32 preempt_known;     // preempt_offset is valid
volatile const s64 preempt_offset;    // of the CPU's preempt count from its run queue
volatile const u32 switch_has_state;  // sched_switch has a fourth argument prev_state, as since Linux 5.18
volatile const u32 owner_only;        // follow threads of one user and group alone, without capabilities
volatile const u32 owner_uid;
volatile const u32 owner_gid;
volatile const u32 can_exchange;      // atomic operations that return a value: Linux 5.18 on arm64
volatile const u64 job_budget = 5000; // events of a job in a budget window
volatile const u64 all_budget = 20000;

#define BUDGET_WINDOW 100000000ULL /* ns */
#define BUSY_THREAD 20             /* events in a budget window from which a thread is summed if its job is over budget */
#define SUM_LENGTH 20000000ULL     /* ns, the time after which a sum ends when the thread leaves its CPU */
#define LONG_PAUSE 10000000ULL     /* ns of a pause after which flush ends a sum */
#define EARLY_WAKE 50000ULL        /* ns by which a wake-up may come before the thread is off its CPU */

#define JOBS 64

// As in package sample.
enum { BEGAN = 1, OUT, IN, SUM_OUT /* ThreadSum, ThreadIn and ThreadOut at one moment */ };
enum { READY, ASLEEP, BLOCKED, DEAD, STOPPED };
enum { NO_FILE, REGULAR, DIRECTORY, PIPE, SOCKET, CHAR_DEVICE, BLOCK_DEVICE, OTHER_FILE };
enum { NO_WAKER, USER_THREAD, KERNEL_THREAD, INTERRUPT, SOFTIRQ };

#define PF_KTHREAD 0x00200000

#define AF_INET 2
#define AF_INET6 10

#define ANON_INODE_FS 0x09041934

struct pause {
	s16 syscall;
	u16 family;
	u8 state;
	u8 file;
	u8 iowait;
	u8 unused;
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
	u8 told; // that it is followed
	u8 running; // 0, 1, or MAYBE at first
	u8 early; // woken was noted before the thread was off its CPU
	u8 unused;
	struct waker waker;
	u64 since; // its last switch
	u64 woken; // first wake-up since then; 0 if none
	struct pause pause;

	u64 utime, stime, fetched, chars; // as far as they are reported

	u64 window; // number of the budget window
	u32 count;  // switches in it
	u32 before; // and in the one before

	u64 from;  // start of the sum; 0 if its switches are reported one by one
	u64 claim; // in a pause of a sum: since; CLAIMED if flush has told the sum; else 0
	u64 ran, ready, blocked, asleep;
	u64 longest;
	struct pause longest_pause;
	struct waker longest_waker;
	u32 unused2;
};

// A job. Number 0 is all jobs together. The kernel side changes the counts without a lock: an error costs a few events.
struct job {
	u32 generation; // 0: not in use
	u32 over;       // more events than the budget
	u64 window;
	u64 count;
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
	u16 family;
};

struct began {
	struct head head;
	u32 slot;
	u32 generation;
	u32 creator;
	u32 unused;
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
	u32 user;   // us
	u32 system; // us
	u32 fetched;
	u32 chars;
	u8 address[16];
};

struct sum {
	struct out out; // with the last pause, which begins where the sum ends
	u64 from;
	u64 ran, ready, blocked, asleep; // ns
	struct pause longest;
	struct waker waker; // of the longest
	u32 unused;
};

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
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counters);
} counters SEC(".maps");

static __always_inline void lose(void)
{
	u32 zero = 0;
	struct counters *c = bpf_map_lookup_elem(&counters, &zero);

	if (c)
		__sync_fetch_and_add(&c->lost, 1);
}

static __always_inline void note_summed(u64 now)
{
	u32 zero = 0;
	struct counters *c = bpf_map_lookup_elem(&counters, &zero);

	if (c)
		c->summed = now;
}

static __always_inline struct job *job_of(const struct thread *th)
{
	u32 slot = th->slot;
	struct job *job = bpf_map_lookup_elem(&jobs, &slot);

	return job && job->generation == th->generation ? job : 0;
}

// Reports whether a thread may be followed. Its rights are those of this moment: it may have run a setuid program.
static __always_inline int may_follow(const struct task_struct *p)
{
	const struct cred *cred;
	u64 capabilities = ~0ULL;

	if (!owner_only)
		return 1;
	cred = BPF_CORE_READ(p, real_cred);
	// Before Linux 6.3 it is an array of the same size.
	bpf_core_read(&capabilities, sizeof(capabilities), &cred->cap_permitted);
	return !capabilities && BPF_CORE_READ(cred, uid.val) == owner_uid && BPF_CORE_READ(cred, euid.val) == owner_uid &&
	       BPF_CORE_READ(cred, suid.val) == owner_uid && BPF_CORE_READ(cred, gid.val) == owner_gid &&
	       BPF_CORE_READ(cred, egid.val) == owner_gid && BPF_CORE_READ(cred, sgid.val) == owner_gid;
}

static __always_inline void count_event(struct job *job, u64 window, u64 budget)
{
	if (job->window != window) {
		job->over = job->window + 1 == window && job->count > (job->over ? budget / 2 : budget);
		job->count = 0;
		job->window = window;
	}
	__sync_fetch_and_add(&job->count, 1);
	if (job->count > budget)
		job->over = 1;
}

// Counts an event and reports whether the thread's events are to be summed.
static __always_inline int over_budget(struct thread *th, struct job *job, u64 now)
{
	u32 zero = 0;
	struct job *all = bpf_map_lookup_elem(&jobs, &zero);
	u64 window = now / BUDGET_WINDOW;

	if (!all)
		return 0;
	count_event(job, window, job_budget);
	count_event(all, window, all_budget);
	if (th->window != window) {
		th->before = th->window + 1 == window ? th->count : 0;
		th->count = 0;
		th->window = window;
	}
	th->count++;
	return (job->over || all->over) && (th->count > BUSY_THREAD || th->before > BUSY_THREAD);
}

static __always_inline void set_head(struct head *h, u8 kind, u64 at, u32 tid, u32 pid)
{
	h->at = at;
	h->tid = tid;
	h->pid = pid;
	h->kind = kind;
	h->state = 0;
	h->file = 0;
	h->iowait = 0;
	h->syscall = -1;
	h->family = 0;
}

static __always_inline int tell_began(struct thread *th, u64 at, u32 pid)
{
	struct began *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		lose();
		return 0;
	}
	set_head(&e->head, BEGAN, at, th->tid, pid);
	e->slot = th->slot;
	e->generation = th->generation;
	e->creator = th->creator;
	e->unused = 0;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	th->told = 1;
	return 1;
}

// The growth of a counter as 32 bits. What does not fit comes with the next event.
static __always_inline u32 growth(u64 now, u64 *reported, u64 unit)
{
	u64 n = (now - *reported) / unit;

	if (now < *reported)
		n = 0;
	if (n > 0xffffffff)
		n = 0xffffffff;
	*reported += n * unit;
	return n;
}

static __always_inline void set_out(struct out *e, u8 kind, const struct thread *th, u32 pid, u64 at,
				    const struct pause *pause)
{
	set_head(&e->head, kind, at, th->tid, pid);
	e->head.state = pause->state;
	e->head.file = pause->file;
	e->head.iowait = pause->iowait;
	e->head.syscall = pause->syscall;
	e->head.family = pause->family;
	e->detail = pause->detail;
	e->user = e->system = e->fetched = e->chars = 0;
	__builtin_memcpy(e->address, pause->address, sizeof(e->address));
}

static __always_inline void set_growth(struct out *e, struct thread *th, const struct task_struct *p)
{
	e->user = growth(p->utime, &th->utime, 1000);
	e->system = growth(p->stime, &th->stime, 1000);
	e->fetched = growth(p->ioac.read_bytes, &th->fetched, 1);
	e->chars = growth(p->ioac.rchar, &th->chars, 1);
}

// Tells that the thread leaves its CPU. before is its previous switch.
static __always_inline int tell_out(struct thread *th, const struct task_struct *p, u64 before, u64 at)
{
	struct out *e;

	if (!th->told && !tell_began(th, before, p->tgid))
		return 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		lose();
		return 0;
	}
	set_out(e, OUT, th, p->tgid, at, &th->pause);
	set_growth(e, th, p);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 1;
}

// Tells that the thread gets a CPU. before is its previous switch.
static __always_inline int tell_in(struct thread *th, const struct task_struct *p, u64 before, u64 at, u64 woken)
{
	struct in *e;

	if (!th->told && !tell_began(th, before, p->tgid))
		return 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		lose();
		return 0;
	}
	set_head(&e->head, IN, at, th->tid, p->tgid);
	e->woken = woken;
	e->waker = woken ? th->waker.tid : 0;
	e->waker_pid = woken ? th->waker.pid : 0;
	e->head.state = woken ? th->waker.kind : NO_WAKER;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 1;
}

static __always_inline void begin_sum(struct thread *th, u64 from)
{
	th->from = from;
	th->ran = th->ready = th->blocked = th->asleep = th->longest = 0;
	th->longest_waker.tid = th->longest_waker.pid = th->longest_waker.kind = 0;
	__builtin_memset(&th->longest_pause, 0, sizeof(th->longest_pause));
	th->longest_pause.syscall = -1;
}

static __always_inline void set_sum(struct sum *e, const struct thread *th, u32 pid, u64 at)
{
	set_out(&e->out, SUM_OUT, th, pid, at, &th->pause);
	e->from = th->from;
	e->ran = th->ran;
	e->ready = th->ready;
	e->blocked = th->blocked;
	e->asleep = th->asleep;
	e->longest = th->longest_pause;
	e->waker = th->longest_waker;
	e->unused = 0;
}

// Tells and ends the sum of a thread that leaves its CPU.
static __always_inline int tell_sum(struct thread *th, const struct task_struct *p, u64 now)
{
	struct sum *e;

	if (!th->told && !tell_began(th, th->from, p->tgid))
		return 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		lose();
		return 0;
	}
	set_sum(e, th, p->tgid, now);
	set_growth(&e->out, th, p);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	th->from = 0;
	return 1;
}

#if defined(__TARGET_ARCH_x86)

static __always_inline long call_of(const struct pt_regs *regs, u64 *argument)
{
	*argument = regs->di;
	return regs->ip ? (long)regs->orig_ax : -1; // io_uring's workers have no registers of a user
}

// The calls whose first argument is a descriptor, and that can pause.
static __always_inline int takes_descriptor(long call)
{
	switch (call) {
	case 0: case 1:				  // read write
	case 16: case 17: case 18: case 19: case 20: // ioctl pread64 pwrite64 readv writev
	case 40:				  // sendfile
	case 42: case 43: case 44: case 45: case 46: case 47: // connect accept sendto recvfrom sendmsg recvmsg
	case 72: case 73: case 74: case 75:	  // fcntl flock fsync fdatasync
	case 77: case 78:			  // ftruncate getdents
	case 187: case 217:			  // readahead getdents64
	case 232:				  // epoll_wait
	case 275: case 276: case 277: case 278:	  // splice tee sync_file_range vmsplice
	case 281: case 285: case 288:		  // epoll_pwait fallocate accept4
	case 295: case 296: case 299:		  // preadv pwritev recvmmsg
	case 306: case 307:			  // syncfs sendmmsg
	case 326: case 327: case 328:		  // copy_file_range preadv2 pwritev2
	case 426: case 441:			  // io_uring_enter epoll_pwait2
		return 1;
	}
	return 0;
}

static __always_inline int sends(long call)
{
	switch (call) {
	case 1: case 18: case 20: case 40: case 42: case 44: case 46: case 275: case 296: case 307: case 328:
		return 1;
	}
	return 0;
}

static __always_inline int is_futex(long call)
{
	return call == 202 || call == 455;
}

#elif defined(__TARGET_ARCH_arm64)

static __always_inline long call_of(const struct pt_regs *regs, u64 *argument)
{
	*argument = regs->orig_x0;
	return regs->pc ? regs->syscallno : -1;
}

static __always_inline int takes_descriptor(long call)
{
	switch (call) {
	case 22: case 25: case 29: case 32:	// epoll_pwait fcntl ioctl flock
	case 46: case 47: case 61:		// ftruncate fallocate getdents64
	case 63: case 64: case 65: case 66: case 67: case 68: case 69: case 70: // read to pwritev
	case 71: case 75: case 76: case 77:	// sendfile vmsplice splice tee
	case 82: case 83: case 84:		// fsync fdatasync sync_file_range
	case 202: case 203: case 206: case 207: case 211: case 212: // accept connect sendto recvfrom sendmsg recvmsg
	case 213: case 242: case 243:		// readahead accept4 recvmmsg
	case 267: case 269:			// syncfs sendmmsg
	case 285: case 286: case 287:		// copy_file_range preadv2 pwritev2
	case 426: case 441:			// io_uring_enter epoll_pwait2
		return 1;
	}
	return 0;
}

static __always_inline int sends(long call)
{
	switch (call) {
	case 64: case 66: case 68: case 70: case 71: case 76: case 203: case 206: case 211: case 269: case 287:
		return 1;
	}
	return 0;
}

static __always_inline int is_futex(long call)
{
	return call == 98 || call == 455;
}

#endif

// What the descriptor stands for. Nothing here is locked: a thread that closes the file at this moment makes it wrong,
// and reading memory that is no longer there gives zeros.
static __always_inline void set_file(struct pause *pause, const struct task_struct *p, u64 descriptor)
{
	struct fdtable *table;
	struct file **files, *file = 0;
	struct inode *inode;
	unsigned short mode;
	u32 fd = descriptor;

	table = BPF_CORE_READ(p, files, fdt);
	if (!table || fd >= BPF_CORE_READ(table, max_fds))
		return;
	files = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	inode = BPF_CORE_READ(file, f_inode);
	if (!inode)
		return;
	pause->detail = BPF_CORE_READ(inode, i_ino);
	mode = BPF_CORE_READ(inode, i_mode) & 0170000;
	switch (mode) {
	case 0010000:
		pause->file = PIPE;
		return;
	case 0020000:
		pause->file = CHAR_DEVICE;
		pause->detail = BPF_CORE_READ(inode, i_rdev);
		return;
	case 0040000:
		pause->file = DIRECTORY;
		return;
	case 0060000:
		pause->file = BLOCK_DEVICE;
		pause->detail = BPF_CORE_READ(inode, i_rdev);
		return;
	case 0140000:
		pause->file = SOCKET;
		break;
	default: // since Linux 6.16, files without a type have the mode of regular ones
		pause->file = mode == 0100000 && BPF_CORE_READ(inode, i_sb, s_magic) != ANON_INODE_FS ? REGULAR
												      : OTHER_FILE;
		return;
	}
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);

	pause->detail = (u32)pause->detail;
	pause->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (pause->family == AF_INET)
		BPF_CORE_READ_INTO((u32 *)pause->address, sk, __sk_common.skc_daddr);
	else if (pause->family == AF_INET6)
		BPF_CORE_READ_INTO((struct in6_addr *)pause->address, sk, __sk_common.skc_v6_daddr);
	else
		return;
	pause->detail |= (u64)__builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport)) << 32;
}

// Describes what the thread does as it leaves its CPU, or as it is found.
static __always_inline void set_pause(struct pause *pause, struct task_struct *task, u8 state)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 argument = 0;
	long call = -1;

	if (regs)
		call = call_of(regs, &argument);
	if (call < 0 || call > 0x7fff)
		call = -1;
	__builtin_memset(pause, 0, sizeof(*pause));
	pause->state = state;
	pause->syscall = call;
	if (state != ASLEEP && state != BLOCKED)
		return;
	pause->iowait = BPF_CORE_READ_BITFIELD(task, in_iowait);
	if (takes_descriptor(call))
		set_file(pause, task, argument);
	else if (is_futex(call))
		pause->detail = argument;
}

static __always_inline u8 state_of(u32 state)
{
	if (!state)
		return READY;
	if (state & 0xb0) // TASK_DEAD, EXIT_ZOMBIE, EXIT_DEAD
		return DEAD;
	if (state & 0x0c) // __TASK_STOPPED, __TASK_TRACED
		return STOPPED;
	return state & 2 ? BLOCKED : ASLEEP;
}

// A non-leader that calls exec gets the leader's number: the one that it had ends, and another begins.
static __always_inline void renumber(struct thread *th, struct task_struct *p, u64 now)
{
	struct out *e;

	if (th->told) {
		e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
		if (e) {
			struct pause end = {.syscall = -1, .state = DEAD};

			set_out(e, OUT, th, p->tgid, now, &end);
			set_growth(e, th, p);
			bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
		} else {
			lose();
		}
	}
	th->creator = th->tid;
	th->tid = p->pid;
	tell_began(th, now, p->tgid);
}

// Follows a thread no longer, and tells no more than that.
static __always_inline void give_up(struct thread *th, const struct task_struct *p, u64 now)
{
	struct out *e;

	th->slot = ~0;
	if (!th->told)
		return;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		lose();
		return;
	}
	__builtin_memset(e, 0, sizeof(*e));
	set_head(&e->head, OUT, now, th->tid, p->tgid);
	e->head.state = DEAD;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

static __always_inline void add_pause(struct thread *th, u64 since, u64 woken, u64 now)
{
	u64 length = (woken ? woken : now) - since;

	th->ready += now - since - length;
	if (th->pause.state == READY) {
		th->ready += length;
		return;
	}
	if (th->pause.iowait || th->pause.state == BLOCKED)
		th->blocked += length;
	else
		th->asleep += length;
	if (length >= th->longest) {
		th->longest = length;
		th->longest_pause = th->pause;
		th->longest_waker = th->waker;
	}
}

// The thread gets a CPU at a time.
static __always_inline void arrive(struct thread *th, const struct task_struct *p, u64 now)
{
	u64 since = th->since, woken = th->woken;

	if (woken && woken < since)
		woken = since;
	th->since = now;
	th->running = 1;
	th->woken = 0;
	if (th->from && can_exchange && __sync_lock_test_and_set(&th->claim, 0) == CLAIMED)
		th->from = 0;
	if (!th->from && tell_in(th, p, since, now, woken))
		return;
	if (!th->from)
		begin_sum(th, since);
	add_pause(th, since, woken, now);
}

static __always_inline void enter(struct thread *th, struct task_struct *p, u64 now)
{
	struct job *job = job_of(th);

	if (!job)
		return;
	if (!may_follow(p)) {
		give_up(th, p, now);
		return;
	}
	if (th->running == 1)
		return;
	over_budget(th, job, now); // counts
	arrive(th, p, now);
}

// The thread was not seen to get the CPU that it leaves now. Some kernels of virtual machines hide switches of threads of
// the hypervisor's agent, and adopt may have seen the thread just before it got its CPU. It did when it was ready.
static __always_inline void enter_unseen(struct thread *th, const struct task_struct *p)
{
	arrive(th, p, th->woken > th->since ? th->woken : th->since);
}

static __always_inline void leave(struct thread *th, struct task_struct *p, u8 state, u64 now)
{
	struct job *job = job_of(th);
	u64 since;
	int over;

	if (!job)
		return;
	if (!may_follow(p)) {
		give_up(th, p, now);
		return;
	}
	if (th->tid != p->pid && p->pid == p->tgid) // the leader that exec ended gets the caller's number, and dies
		renumber(th, p, now);
	if (!th->running)
		enter_unseen(th, p);
	since = th->since;
	th->since = now;
	th->running = 0;
	if (state == READY || th->woken + EARLY_WAKE < now) {
		th->woken = 0;
		th->early = 0;
	} else {
		th->early = 1;
	}
	set_pause(&th->pause, p, state);
	over = over_budget(th, job, now);
	if (!over && !th->from && tell_out(th, p, since, now))
		return;
	if (!th->from)
		begin_sum(th, since);
	th->ran += now - since;
	if ((!over || state == DEAD || now - th->from >= SUM_LENGTH) && tell_sum(th, p, now))
		return;
	if (can_exchange) {
		*(volatile u64 *)&th->claim = now;
		note_summed(now);
	}
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	int preempted = ctx[0] & 1;
	struct task_struct *prev = (struct task_struct *)ctx[1];
	struct task_struct *next = (struct task_struct *)ctx[2];
	struct thread *leaves = bpf_task_storage_get(&threads, prev, 0, 0);
	struct thread *enters = bpf_task_storage_get(&threads, next, 0, 0);
	u64 now;
	u32 state;

	if (!leaves) {
		barrier(); // the verifier refuses one test of both pointers together
		if (!enters)
			return 0; // as nearly all switches of the machine
	}
	now = bpf_ktime_get_ns();
	state = prev->__state;
	if (preempted)
		state = 0;
	// A thread with a pending signal stays ready, and its state is 0. Another CPU that wakes the thread at this moment
	// makes it TASK_WAKING.
	if (state && switch_has_state)
		state = ctx[3];
	if (leaves)
		leave(leaves, prev, state_of(state), now);
	if (enters)
		enter(enters, next, now);
	return 0;
}

// Tells whether the kernel is in an interrupt. On x86, the count is a variable of the CPU. Its address is that of the
// CPU's run queue, which is another one, and the distance between the two: many kernels keep no addresses of variables.
static __always_inline u32 preempt_count(const struct task_struct *current)
{
#if defined(__TARGET_ARCH_arm64)
	return current->thread_info.preempt.count;
#else
	struct rq *rq;
	u32 count = 0;

	if (!preempt_known)
		return 0;
	if (!bpf_core_field_exists(struct cfs_rq, rq)) // without CONFIG_FAIR_GROUP_SCHED
		return 0;
	rq = current->se.cfs_rq->rq;
	if (rq && rq->cpu == (int)bpf_get_smp_processor_id())
		bpf_probe_read_kernel(&count, sizeof(count), (const char *)rq + preempt_offset);
	return count;
#endif
}

static __always_inline void set_waker(struct waker *w)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task_btf();
	u32 count = preempt_count(current);
	struct pt_regs *regs;
	u64 argument;

	w->tid = w->pid = 0;
	if (count & HARDIRQ_MASK || !current->pid) { // the idle thread runs what other CPUs ask for
		w->kind = INTERRUPT;
		return;
	}
	if (count & SOFTIRQ_SERVING) {
		w->kind = SOFTIRQ;
		if (current->flags & PF_KTHREAD)
			return;
		regs = (struct pt_regs *)bpf_task_pt_regs(current);
		if (!regs || !sends(call_of(regs, &argument)))
			return;
	} else {
		w->kind = current->flags & PF_KTHREAD ? KERNEL_THREAD : USER_THREAD;
	}
	w->tid = current->pid;
	w->pid = current->tgid;
}

SEC("tp_btf/sched_waking")
int on_waking(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	struct thread *th = bpf_task_storage_get(&threads, p, 0, 0);

	if (!th || !job_of(th))
		return 0;
	if (th->woken && !th->running && !th->early)
		return 0; // the first one counts
	th->woken = bpf_ktime_get_ns();
	th->early = 0;
	set_waker(&th->waker);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx[0];
	struct task_struct *child = (struct task_struct *)ctx[1];
	struct thread *of = bpf_task_storage_get(&threads, parent, 0, 0);
	struct thread *th, new = {};
	u64 now;

	if (!of || !job_of(of) || !may_follow(child))
		return 0;
	now = bpf_ktime_get_ns();
	new.slot = of->slot;
	new.generation = of->generation;
	new.tid = child->pid;
	new.creator = parent->pid;
	new.since = new.woken = now;
	new.waker.tid = parent->pid;
	new.waker.pid = parent->tgid;
	new.waker.kind = USER_THREAD;
	new.pause.syscall = -1;
	th = bpf_task_storage_get(&threads, child, &new, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!th)
		lose();
	else if (th->since == now) // else adopt was there before
		tell_began(th, now, child->tgid);
	return 0;
}

// Adopts the threads of the groups in joining. A thread that is off its CPU is told to be so, if it cannot have been on
// one meanwhile.
SEC("iter/task")
int adopt(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct member *member;
	struct thread *th, new = {};
	u64 switches, now;
	u32 tgid, state;
	int running;

	if (!p)
		return 0;
	tgid = p->tgid;
	member = bpf_map_lookup_elem(&joining, &tgid);
	if (!member || !may_follow(p))
		return 0;
	th = bpf_task_storage_get(&threads, p, 0, 0);
	if (th && job_of(th))
		return 0;

	now = bpf_ktime_get_ns();
	switches = p->nvcsw + p->nivcsw;
	running = p->on_cpu;
	state = p->__state;
	new.slot = member->slot;
	new.generation = member->generation;
	new.tid = p->pid;
	new.since = now;
	new.running = running ? MAYBE : 0;
	new.told = 1; // by us, not by a switch at this moment
	new.utime = p->utime;
	new.stime = p->stime;
	new.fetched = p->ioac.read_bytes;
	new.chars = p->ioac.rchar;
	set_pause(&new.pause, p, state_of(state));
	if (new.pause.state == DEAD)
		return 0;
	if (th)
		bpf_task_storage_delete(&threads, p);
	th = bpf_task_storage_get(&threads, p, &new, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!th) {
		lose();
		return 0;
	}
	if (th->since != now) // it was created a moment ago, and on_fork was there before
		return 0;
	if (!tell_began(th, now, tgid)) {
		th->told = 0;
		return 0;
	}
	if (running || p->on_cpu || p->nvcsw + p->nivcsw != switches || p->__state != state)
		return 0;
	tell_out(th, p, now, now);
	return 0;
}

// Tells the sums of threads that paused within one and do not come back soon.
SEC("iter/task")
int flush(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct thread *th;
	struct sum *e;
	u64 since;

	if (!p || !can_exchange)
		return 0;
	th = bpf_task_storage_get(&threads, p, 0, 0);
	if (!th || !th->told || !job_of(th))
		return 0;
	since = *(volatile u64 *)&th->claim;
	if (since <= CLAIMED || since + LONG_PAUSE > bpf_ktime_get_ns())
		return 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e)
		return 0; // the next round, then
	// While the claim is since, the sum does not change. Its growth comes with the next event.
	set_sum(e, th, p->tgid, since);
	if (__sync_val_compare_and_swap(&th->claim, since, CLAIMED) == since)
		bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	else
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
	return 0;
}
