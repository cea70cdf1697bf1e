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

struct list_head {
	struct list_head *next;
};

struct eventpoll {
	struct list_head rdllist;
};

struct epoll_filefd {
	struct file *file;
};

struct epitem {
	struct list_head rdllink;
	struct epoll_filefd ffd;
};

struct in6_addr {
	u8 bytes[16];
};

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

typedef struct {
	s64 counter;
} atomic64_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	int skc_bound_dev_if;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
};

struct sk_buff_head {
	u32 qlen;
};

struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
	struct sk_buff_head sk_receive_queue;
	u8 sk_shutdown;
};

struct socket {
	struct sock *sk;
};

struct minmax_sample {
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	u64 bytes_received;
	u64 bytes_sent;
	u64 bytes_retrans;
	u32 data_segs_in;
	u32 data_segs_out;
	u32 rcv_ooopack;
	u32 rcv_ssthresh;
	u32 rcv_wnd;
	struct minmax rtt_min; // us
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
	u64 prev_steal_time_rq; // with CONFIG_PARAVIRT_TIME_ACCOUNTING
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
	unsigned long nvcsw;
	unsigned long nivcsw;
	char comm[16];
	struct files_struct *files;
	struct task_io_accounting ioac;
	const struct cred *real_cred;
	void *bpf_storage; // of all programs
};

struct bpf_iter__task {
	struct task_struct *task;
};

struct bpf_iter__bpf_map_elem {
	void *key;
	void *value;
};

struct bio {
	u32 bi_opf;
};

struct pt_regs {
#if defined(__TARGET_ARCH_x86)
	unsigned long di;
	unsigned long si;
	unsigned long orig_ax;
	unsigned long ip;
#elif defined(__TARGET_ARCH_arm64)
	u64 regs[31];
	u64 pc;
	u64 orig_x0;
	int syscallno;
#endif
};

#pragma clang attribute pop

#define HARDIRQ_MASK 0x00ff0000 /* with NMI */
#define SOFTIRQ_SERVING 0x00000100

#define REQ_OP_MASK 0xff

// Values that the loader sets.
volatile const u32 preempt_known;     // preempt_offset is valid
volatile const s64 preempt_offset;    // of the CPU's preempt count from its run queue
volatile const u32 switch_has_state;  // sched_switch has a fourth argument prev_state, as since Linux 5.18
volatile const u32 owner_only;        // follow threads of one user and group alone, without capabilities
volatile const u32 owner_uid;
volatile const u32 owner_gid;
volatile const u32 own_space;         // inode of the network namespace of user space; 0 if it is not known
volatile const u32 can_exchange;      // atomic operations that return a value: Linux 5.18 on arm64
volatile const u32 faults_seen;       // on_fault and on_mapped are attached
volatile const u64 job_budget = 5000; // events of a job that are told in a budget window
volatile const u64 merge_budget = 1250; // events of a job in one, told or not, above which its waits for storage are merged
volatile const u64 all_budget = 20000;

#define BUDGET_WINDOW 100000000ULL /* ns */
#define BUSY_THREAD 20             /* events in a budget window from which a thread is summed if its job is over budget */
#define MERGE_LENGTH 1000000ULL    /* ns, the time after which a sum of waits for storage ends when the thread leaves its CPU */
#define ROUND 2                    /* events of a thread that leaves its CPU and comes back */
#define SUM_LENGTH 20000000ULL     /* ns, the time after which a sum ends when the thread leaves its CPU */
#define LONG_PAUSE 10000000ULL     /* ns of a pause after which flush ends a sum */
#define NAMED_PAUSE 1000000ULL     /* ns of a pause from which the name of an unknown waker is told */
#define EARLY_WAKE 50000ULL        /* ns by which a wake-up may come before the thread is off its CPU */
#define STEP_GAP 50000ULL         /* ns of running between two steps of fetching data, or from the last one to the wait */

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

enum { ONE_BY_ONE, MERGED, SUMMED };

#define PF_KTHREAD 0x00200000

#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
enum { TCP_ESTABLISHED = 1, TCP_SYN_SENT = 2, TCP_CLOSE = 7 };

#define ANON_INODE_FS 0x09041934

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
	u8 told; // that it is followed
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
	u64 claim; // in a pause of a sum: since; CLAIMED if flush has told the sum; else 0
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
	struct load told;
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
	u64 told; // when it was last told; 0 before it is established
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

// Returns what is kept of a thread, or null. Nearly all threads have no storage: looking first saves a call.
static __always_inline struct thread *thread_of(struct task_struct *p)
{
	return p->bpf_storage ? bpf_task_storage_get(&threads, p, 0, 0) : 0;
}

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

// Counts the bytes that the thread has read since it last left its CPU.
static __always_inline void note_moved(struct thread *th, const struct task_struct *p)
{
	u64 all = p->ioac.read_bytes + p->ioac.rchar;
	u32 zero = 0, slot = th->slot;
	struct counters *c;

	if (all <= th->moved || slot > JOBS)
		return;
	c = bpf_map_lookup_elem(&counters, &zero);
	if (c)
		__sync_fetch_and_add(&c->moved[slot], all - th->moved);
	th->moved = all;
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

static __always_inline void count_event(struct load *load, u64 window, u64 budget)
{
	if (load->window != window) {
		load->over = load->window + 1 == window && load->count > (load->over ? budget / 2 : budget);
		load->count = 0;
		load->window = window;
	}
	load->count += ROUND;
	if (load->count > budget)
		load->over = 1;
}

// Counts the events of a thread that leaves its CPU and comes back, and tells how they are to be told: one by one
// (ONE_BY_ONE), as part of a sum of waits for storage (MERGED), or of one of anything (SUMMED).
static __always_inline int how_to_tell(struct thread *th, struct job *job, u64 now)
{
	u32 zero = 0;
	struct job *all = bpf_map_lookup_elem(&jobs, &zero);
	u64 window = now / BUDGET_WINDOW;
	int busy, merges;

	if (!all)
		return ONE_BY_ONE;
	if (th->window != window) {
		th->before = th->window + 1 == window ? th->count : 0;
		th->count = 0;
		th->window = window;
	}
	th->count += ROUND;
	busy = th->count > BUSY_THREAD || th->before > BUSY_THREAD;
	count_event(&job->all, window, merge_budget);
	merges = can_exchange && job->all.over && busy && th->pause.iowait;
	if (!merges || !th->from || now - th->from >= MERGE_LENGTH) {
		count_event(&job->told, window, job_budget);
		count_event(&all->told, window, all_budget);
	}
	if ((job->told.over || all->told.over) && busy)
		return SUMMED;
	return merges ? MERGED : ONE_BY_ONE;
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

static __always_inline int tell_began(struct thread *th, const struct task_struct *p, u64 at)
{
	struct began *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		lose();
		return 0;
	}
	set_head(&e->head, BEGAN, at, th->tid, p->tgid);
	e->slot = th->slot;
	e->generation = th->generation;
	e->creator = th->creator;
	e->unused = 0;
	bpf_core_read(&e->name, sizeof(e->name), &p->comm);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	th->told = 1;
	return 1;
}

// The growth of a counter as 32 bits. What does not fit comes with the next event.
static __always_inline u32 growth(u64 now, u64 *reported)
{
	u64 n = now - *reported;

	if (now < *reported)
		n = 0;
	if (n > 0xffffffff)
		n = 0xffffffff;
	*reported += n;
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
	e->fetching = e->fetched = e->chars = e->stolen = e->unused = 0;
	__builtin_memcpy(e->address, pause->address, sizeof(e->address));
}

static __always_inline void set_growth(struct out *e, struct thread *th, const struct task_struct *p)
{
	e->fetching = th->fetching;
	th->fetching = 0;
	e->fetched = growth(p->ioac.read_bytes, &th->fetched);
	e->chars = growth(p->ioac.rchar, &th->chars);
	e->stolen = th->stolen / 1000;
	th->stolen -= (u64)e->stolen * 1000;
}

// The time that the hypervisor stole from the thread's CPU since the start, as the scheduler last read it, in ns. The
// scheduler reads it as it switches.
static __always_inline u64 steal(const struct task_struct *p)
{
	struct cfs_rq *queue;

	if (!bpf_core_field_exists(struct rq, prev_steal_time_rq) || !bpf_core_field_exists(struct cfs_rq, rq))
		return 0;
	queue = p->se.cfs_rq;
	return queue->rq->prev_steal_time_rq;
}

// Tells that the thread leaves its CPU. before is its previous switch.
static __always_inline int tell_out(struct thread *th, const struct task_struct *p, u64 before, u64 at)
{
	struct out *e;

	if (!th->told && !tell_began(th, p, before))
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

	if (!th->told && !tell_began(th, p, before))
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
	th->merges = 0;
	th->ran = th->ready = th->blocked = th->asleep = th->longest = 0;
	th->longest_waker.tid = th->longest_waker.pid = th->longest_waker.kind = 0;
	__builtin_memset(&th->longest_pause, 0, sizeof(th->longest_pause));
	th->longest_pause.syscall = -1;
}

static __always_inline void set_sum(struct sum *e, u8 kind, const struct thread *th, u32 pid, u64 at)
{
	set_out(&e->out, kind, th, pid, at, &th->pause);
	e->from = th->from;
	e->ran = th->ran;
	e->ready = th->ready;
	e->blocked = th->blocked;
	e->asleep = th->asleep;
	e->longest = th->longest_pause;
	e->waker = th->longest_waker;
	e->unused = 0;
}

// Tells and ends the sum of a thread: SUM_OUT as it leaves its CPU, SUM_IN as it runs on.
static __always_inline int tell_sum(struct thread *th, u8 kind, const struct task_struct *p, u64 now)
{
	struct sum *e;

	if (!th->told && !tell_began(th, p, th->from))
		return 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		lose();
		return 0;
	}
	set_sum(e, kind, th, p->tgid, now);
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

static __always_inline int is_poll(long call)
{
	return call == 7 || call == 271; // poll ppoll
}

static __always_inline int is_epoll(long call)
{
	return call == 232 || call == 281 || call == 441; // epoll_wait epoll_pwait epoll_pwait2
}

static __always_inline u64 second_argument(const struct pt_regs *regs)
{
	return regs->si;
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

static __always_inline int is_poll(long call)
{
	return call == 73; // ppoll
}

static __always_inline int is_epoll(long call)
{
	return call == 22 || call == 441; // epoll_pwait epoll_pwait2
}

static __always_inline u64 second_argument(const struct pt_regs *regs)
{
	return regs->regs[1];
}

#endif

// Reads a field of a structure whose address is no pointer of a known type to the verifier. Since Linux 6.2 a cast
// makes it one, and the read is a plain load. Before that, each read is a call.
extern void *bpf_rdonly_cast(const void *address, u32 type) __ksym __weak;

#define FIELD(kind, address, field)                                                                            \
	(bpf_rdonly_cast ? ((struct kind *)bpf_rdonly_cast(address, bpf_core_type_id_kernel(struct kind)))->field \
			 : BPF_CORE_READ((struct kind *)(address), field))

// The file of a descriptor. Nothing here is locked: a thread that closes the file at this moment makes it wrong, and
// reading memory that is no longer there gives zeros.
static __always_inline struct file *file_of(const void *files, u32 fd)
{
	struct fdtable *table = FIELD(files_struct, files, fdt);
	struct file *file = 0;

	if (fd < FIELD(fdtable, table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), FIELD(fdtable, table, fd) + fd);
	return file;
}

static __always_inline void set_peer(struct pause *pause, struct file *file)
{
	struct socket *socket = FIELD(file, file, private_data);
	struct sock *sk = FIELD(socket, socket, sk);
	u8 family = FIELD(sock, sk, __sk_common.skc_family);

	pause->family = family | FIELD(sock, sk, sk_protocol) << 8;
	if (family == AF_INET)
		BPF_CORE_READ_INTO((u32 *)pause->address, sk, __sk_common.skc_daddr);
	else if (family == AF_INET6)
		BPF_CORE_READ_INTO((struct in6_addr *)pause->address, sk, __sk_common.skc_v6_daddr);
	else
		return;
	pause->detail |= (u64)__builtin_bswap16(FIELD(sock, sk, __sk_common.skc_dport)) << 32;
}

// Describes the file at an address. The verifier looks at a function that is not static once, and not for each of its
// callers. It refuses pointers to the kernel's memory as arguments of one.
__attribute__((noinline)) int set_file(struct pause *pause, u64 address)
{
	struct file *file = (void *)address;
	struct inode *inode;
	unsigned short type;

	if (!pause || !file)
		return 0;
	inode = FIELD(file, file, f_inode);
	if (!inode)
		return 0;
	pause->detail = FIELD(inode, inode, i_ino);
	type = FIELD(inode, inode, i_mode) & 0170000;
	switch (type) {
	case 0010000:
		pause->file = PIPE;
		return 0;
	case 0040000:
		pause->file = DIRECTORY;
		return 0;
	case 0020000:
	case 0060000:
		pause->file = type == 0020000 ? CHAR_DEVICE : BLOCK_DEVICE;
		pause->detail = FIELD(inode, inode, i_rdev);
		return 0;
	case 0140000:
		pause->file = SOCKET;
		pause->detail = (u32)pause->detail;
		set_peer(pause, file);
		return 0;
	}
	pause->file = OTHER_FILE;
	if (type == 0100000) { // since Linux 6.16, also of files without a type
		struct super_block *fs = FIELD(inode, inode, i_sb);

		if (FIELD(super_block, fs, s_magic) != ANON_INODE_FS)
			pause->file = REGULAR;
	}
	return 0;
}

#define POLLED 4 /* files of a poll that are looked at */

struct pollfd {
	int fd;
	short events;
	short revents;
};

// Notes the first files that the current thread waits for in poll: in address, and how many in detail. One alone is like
// a read of that file.
static __always_inline void set_polled(struct pause *pause, u64 files, u64 where, u64 count)
{
	struct pollfd polled[POLLED] = {};
	u32 *fds = (u32 *)pause->address, n;
	int i;

	n = count < POLLED ? count : POLLED;
	if (bpf_probe_read_user(polled, n * sizeof(polled[0]), (void *)where))
		n = 0;
	for (i = 0; i < POLLED; i++)
		fds[i] = polled[i].fd;
	pause->detail = n;
	pause->several = n > 1;
	if (n == 1) {
		fds[0] = 0;
		set_file(pause, (u64)file_of((void *)files, polled[0].fd));
	}
}

// Describes what the thread waits for in a call, from its first two arguments.
__attribute__((noinline)) int set_waited(struct pause *pause, u64 files, u64 call, u64 first, u64 second)
{
	if (!pause)
		return 0;
	if (takes_descriptor(call))
		set_file(pause, (u64)file_of((void *)files, first));
	else if (is_futex(call))
		pause->detail = first;
	else if (is_poll(call))
		set_polled(pause, files, first, second);
	if (is_epoll(call)) {
		pause->several = 1;
		*(u32 *)pause->address = first;
	}
	return 0;
}

// Describes what the thread does as it leaves its CPU, or as it is found.
static __always_inline void set_pause(struct pause *pause, struct task_struct *task, u8 state, int is_current)
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
	if (call >= 0)
		set_waited(pause, (u64)BPF_CORE_READ(task, files), call, argument, is_current ? second_argument(regs) : 0);
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
	tell_began(th, p, now);
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

static __always_inline int for_storage(const struct pause *pause)
{
	return pause->iowait || pause->state == BLOCKED;
}

static __always_inline void add_pause(struct thread *th, u64 since, u64 woken, u64 now)
{
	u64 length = (woken ? woken : now) - since;

	if (th->pause.state == READY) {
		th->ready += now - since;
		return;
	}
	if (for_storage(&th->pause)) {
		th->blocked += now - since; // until it has a CPU again: that wait has the same cause
	} else {
		th->asleep += length;
		th->ready += now - since - length;
	}
	if (length >= th->longest) {
		th->longest = length;
		th->longest_pause = th->pause;
		th->longest_waker = th->waker;
	}
}

// The thread, which runs, takes a step to fetch data from storage. The time between two steps counts if it is short.
static __always_inline void take_step(struct thread *th)
{
	u64 now = bpf_ktime_get_ns();

	if (now - th->step > STEP_GAP) {
		th->fetching += th->step - th->step_from;
		th->step_from = now;
	}
	th->step = now;
	th->fetches = 1;
}

// The thread begins to serve a page fault that the page cache may have no data for, or tries again after a wait. It is
// the first step if another one or a wait follows.
static __always_inline void begin_fault(struct thread *th)
{
	u64 now = bpf_ktime_get_ns();

	if (!th->fetches || now - th->step > STEP_GAP) {
		th->fetching += th->step - th->step_from;
		th->step_from = now;
		th->fetches = 0;
	}
	th->step = now;
}

// The thread has the pages that its page fault needs. This ends what took steps.
static __always_inline void end_steps(struct thread *th)
{
	u64 now = bpf_ktime_get_ns();

	if (th->fetches && now - th->step <= STEP_GAP)
		th->step = now;
	if (th->fetches)
		th->fetching += th->step - th->step_from;
	th->step_from = th->step = 0;
	th->fetches = 0;
}

// The thread leaves its CPU. What it did after the last step was for fetching, too, if it waits for storage now. So was
// what a hypervisor stole to serve the request.
static __always_inline void pause_steps(struct thread *th, u64 now, u64 lost)
{
	if (now - th->step <= STEP_GAP + lost && for_storage(&th->pause))
		th->step = now;
	th->fetching += th->step - th->step_from;
	th->step_from = th->step;
}

// The thread gets a CPU. One that was interrupted goes on with its steps. After a wait for storage, a page fault has to
// finish what it began.
static __always_inline void resume_steps(struct thread *th, u64 off, u64 now)
{
	if (th->pause.state == READY) {
		th->step_from = th->step = th->step + off;
		return;
	}
	th->fetches = faults_seen && th->pause.syscall < 0 && for_storage(&th->pause);
	th->step_from = th->step = th->fetches ? now : 0;
}

// The file with which an epoll has ended: the first one of those that are ready.
static __always_inline struct file *ready_of_epoll(u64 files, u32 fd)
{
	struct eventpoll *epoll = BPF_CORE_READ(file_of((void *)files, fd), private_data);
	struct list_head *first = BPF_CORE_READ(epoll, rdllist.next);
	struct epitem *item = (void *)first - bpf_core_field_offset(struct epitem, rdllink);

	if (!epoll || !first || first == (void *)epoll + bpf_core_field_offset(struct eventpoll, rdllist))
		return 0;
	return BPF_CORE_READ(item, ffd.file);
}

// Reports whether a descriptor is a socket that has data, or will have no more.
__attribute__((noinline)) int has_data(u64 files, u32 fd)
{
	struct file *file = file_of((void *)files, fd);
	struct socket *socket;
	struct sock *sk;

	if ((BPF_CORE_READ(file, f_inode, i_mode) & 0170000) != 0140000)
		return 0;
	socket = BPF_CORE_READ(file, private_data);
	sk = BPF_CORE_READ(socket, sk);
	return BPF_CORE_READ(sk, sk_receive_queue.qlen) || BPF_CORE_READ(sk, sk_shutdown);
}

// Returns which of several files ended a wait for one of them, if that can be seen.
static __always_inline struct file *ready_file(const struct pause *pause, u64 files)
{
	const u32 *fds = (const u32 *)pause->address;
	int i;

	if (is_epoll(pause->syscall))
		return ready_of_epoll(files, fds[0]);
	for (i = 0; i < POLLED; i++) {
		if (i >= pause->detail)
			break;
		if (has_data(files, fds[i]))
			return file_of((void *)files, fds[i]);
	}
	return 0;
}

// Tells which of several files ended a wait.
__attribute__((noinline)) int tell_found(struct thread *th, u64 files, u32 tgid, u64 at)
{
	struct pause found = {};
	struct file *file;
	struct out *e;

	if (!th || th->from || !th->told)
		return 0;
	file = ready_file(&th->pause, files);
	if (!file)
		return 0;
	found.syscall = th->pause.syscall;
	set_file(&found, (u64)file);
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		lose();
		return 0;
	}
	set_out(e, FOUND, th, tgid, at, &found);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

// The thread gets a CPU at a time. Seen: this is the moment, and not its next switch.
static __always_inline void arrive(struct thread *th, const struct task_struct *p, u64 now, int seen)
{
	u64 since = th->since, woken = th->woken;

	if (woken && woken < since)
		woken = since;
	th->since = now;
	th->running = 1;
	th->woken = 0;
	th->stolen_at = steal(p);
	resume_steps(th, now - since, now);
	if (th->from && can_exchange && __sync_lock_test_and_set(&th->claim, 0) == CLAIMED)
		th->from = 0;
	// Another thread ended this pause, which was for a lock, then.
	if (th->from && th->merges && woken && th->waker.tid)
		tell_sum(th, SUM_OUT, p, since);
	if (seen && th->pause.several && since + NAMED_PAUSE < woken)
		tell_found(th, (u64)BPF_CORE_READ(p, files), p->tgid, now);
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
	arrive(th, p, now, 1);
}

// The thread was not seen to get the CPU that it leaves now. Some kernels of virtual machines hide switches of threads of
// the hypervisor's agent, and adopt may have seen the thread just before it got its CPU. It did when it was ready.
static __always_inline void enter_unseen(struct thread *th, const struct task_struct *p)
{
	arrive(th, p, th->woken > th->since ? th->woken : th->since, 0);
}

// Reports whether the sum of a thread ends now that it leaves its CPU.
static __always_inline int ends_sum(struct thread *th, int how, u64 now)
{
	if (how == SUMMED) {
		th->merges = 0;
		return now - th->from >= SUM_LENGTH;
	}
	return how == ONE_BY_ONE || !th->merges || now - th->from >= MERGE_LENGTH;
}

static __always_inline void leave(struct thread *th, struct task_struct *p, u8 state, u64 now)
{
	struct job *job = job_of(th);
	u64 since, stolen, lost;
	int how;

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
	note_moved(th, p);
	since = th->since;
	th->since = now;
	th->running = 0;
	stolen = steal(p);
	lost = stolen > th->stolen_at ? stolen - th->stolen_at : 0;
	th->stolen += lost;
	if (state == READY || th->woken + EARLY_WAKE < now) {
		th->woken = 0;
		th->early = 0;
	} else {
		th->early = 1;
	}
	set_pause(&th->pause, p, state, 1);
	pause_steps(th, now, lost);
	how = how_to_tell(th, job, now);
	if (how == ONE_BY_ONE && !th->from && tell_out(th, p, since, now))
		return;
	if (!th->from) {
		begin_sum(th, since);
		th->merges = how == MERGED;
	}
	th->ran += now - since;
	if ((ends_sum(th, how, now) || state == DEAD) && tell_sum(th, SUM_OUT, p, now))
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
	struct thread *leaves = thread_of(prev);
	struct thread *enters = thread_of(next);
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

// Tells how a thread is called.
static __always_inline void tell_name(const struct task_struct *p, const char *name, u64 at)
{
	struct named *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		lose();
		return;
	}
	__builtin_memset(e, 0, sizeof(*e));
	set_head(&e->head, NAMED, at, p->pid, p->tgid);
	bpf_probe_read_kernel_str(e->name, sizeof(e->name), name);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

// Tells the name of a thread that is not followed and ends a long pause, unless it ended the one before, too.
static __always_inline void name_waker(struct thread *th)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task_btf();

	if (owner_only || th->waker.kind != USER_THREAD || th->running || th->named == th->waker.tid ||
	    th->since + NAMED_PAUSE > th->woken || bpf_task_storage_get(&threads, current, 0, 0))
		return;
	th->named = th->waker.tid;
	tell_name(current, current->comm, th->woken);
}

// The current thread wakes another one. What it did before is told first, or else how far it was would not be known at
// that moment.
static __always_inline void end_merged(u64 now)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task_btf();
	struct thread *by = thread_of(current);
	struct job *job;

	if (!by || !by->from || !by->merges || by->running != 1)
		return;
	job = job_of(by);
	if (!job)
		return;
	count_event(&job->told, now / BUDGET_WINDOW, job_budget);
	by->ran += now - by->since;
	by->since = now;
	tell_sum(by, SUM_IN, current, now);
}

SEC("tp_btf/sched_waking")
int on_waking(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	struct thread *th = thread_of(p);
	u64 now;

	if (!th || !job_of(th))
		return 0;
	if (th->woken && !th->running && !th->early)
		return 0; // the first one counts
	now = bpf_ktime_get_ns();
	*(volatile u64 *)&th->woken = now; // the thread may be on its way to another CPU, and change it at any moment
	th->early = 0;
	set_waker(&th->waker);
	if (th->waker.tid)
		end_merged(now);
	name_waker(th);
	return 0;
}

// A thread takes another name.
SEC("tp_btf/task_rename")
int on_rename(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx[0];
	struct thread *th = bpf_task_storage_get(&threads, p, 0, 0);

	if (th && th->told && job_of(th) && may_follow(p))
		tell_name(p, (const char *)ctx[1], bpf_ktime_get_ns());
	return 0;
}

// The kernel takes a page for data of a file. It is to be read, except in a call that writes.
SEC("tp_btf/mm_filemap_add_to_page_cache")
int on_page(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)bpf_get_current_task_btf();
	struct thread *th = bpf_task_storage_get(&threads, p, 0, 0);
	struct pt_regs *regs;
	u64 argument;

	if (!th)
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(p);
	if (regs && !sends(call_of(regs, &argument)))
		take_step(th);
	return 0;
}

// A page fault finds no data that it could map at once.
SEC("tp_btf/mm_filemap_fault")
int on_fault(u64 *ctx)
{
	struct thread *th = thread_of((struct task_struct *)bpf_get_current_task_btf());

	if (th)
		begin_fault(th);
	return 0;
}

// A page fault maps data that are in the page cache. One that had to wait for them does so at last.
SEC("tp_btf/mm_filemap_map_pages")
int on_mapped(u64 *ctx)
{
	struct thread *th = thread_of((struct task_struct *)bpf_get_current_task_btf());

	if (th && th->step)
		end_steps(th);
	return 0;
}

// A block device is asked for data.
SEC("tp_btf/block_bio_queue")
int on_bio(u64 *ctx)
{
	struct bio *bio = (struct bio *)ctx[0];
	struct thread *th = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);

	if (th && !(bio->bi_opf & REQ_OP_MASK)) // REQ_OP_READ
		take_step(th);
	return 0;
}

static __always_inline u32 space_of(const struct sock *sk)
{
	struct net *net;

	if (!bpf_core_field_exists(struct ns_common, inum))
		return 0;
	net = FIELD(sock, sk, __sk_common.skc_net.net);
	return FIELD(net, net, ns.inum);
}

// Tells what a connection has moved.
static __always_inline void tell_connection(const struct opened *of, struct sock *sk, u64 cookie, u8 state, u64 now)
{
	struct connection *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	u16 family = FIELD(sock, sk, __sk_common.skc_family);

	if (!e) {
		lose();
		return;
	}
	__builtin_memset(e, 0, sizeof(*e));
	set_head(&e->head, CONNECTION, now, 0, 0);
	e->head.state = state;
	e->head.family = family;
	e->slot = of->slot;
	e->generation = of->generation;
	e->cookie = cookie;
	e->received = FIELD(tcp_sock, sk, bytes_received);
	e->sent = FIELD(tcp_sock, sk, bytes_sent) - FIELD(tcp_sock, sk, bytes_retrans);
	e->messages = FIELD(tcp_sock, sk, data_segs_out);
	e->packets = FIELD(tcp_sock, sk, data_segs_in);
	e->out_of_order = FIELD(tcp_sock, sk, rcv_ooopack);
	e->min_rtt = FIELD(tcp_sock, sk, rtt_min.s[0].v);
	e->window = FIELD(tcp_sock, sk, rcv_wnd);
	if (e->window < FIELD(tcp_sock, sk, rcv_ssthresh))
		e->window = FIELD(tcp_sock, sk, rcv_ssthresh);
	e->device = FIELD(sock, sk, __sk_common.skc_bound_dev_if);
	e->space = space_of(sk);
	e->local_port = FIELD(sock, sk, __sk_common.skc_num);
	e->remote_port = __builtin_bswap16(FIELD(sock, sk, __sk_common.skc_dport));
	if (family == AF_INET) {
		BPF_CORE_READ_INTO((u32 *)e->local, sk, __sk_common.skc_rcv_saddr);
		BPF_CORE_READ_INTO((u32 *)e->remote, sk, __sk_common.skc_daddr);
	} else {
		BPF_CORE_READ_INTO((struct in6_addr *)e->local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO((struct in6_addr *)e->remote, sk, __sk_common.skc_v6_daddr);
	}
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

// Tells when a connection that a followed thread has opened is established, and when it is closed. The thread calls
// connect itself; what follows comes in interrupts.
SEC("tp_btf/inet_sock_set_state")
int on_state(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	int state = ctx[2];
	struct opened *of, new = {};
	u64 key = (u64)sk, now;
	struct task_struct *p;
	struct thread *th;
	struct job *job;

	if (state == TCP_SYN_SENT) {
		p = (struct task_struct *)bpf_get_current_task_btf();
		th = thread_of(p);
		if (!th || !job_of(th) || !may_follow(p) || sk->sk_protocol != IPPROTO_TCP)
			return 0;
		new.slot = th->slot;
		new.generation = th->generation;
		bpf_map_update_elem(&connections, &key, &new, 0);
		return 0;
	}
	if (state != TCP_ESTABLISHED && state != TCP_CLOSE)
		return 0;
	of = bpf_map_lookup_elem(&connections, &key);
	if (!of)
		return 0;
	new = *of;
	job = bpf_map_lookup_elem(&jobs, &new.slot);
	now = bpf_ktime_get_ns();
	if (job && job->generation == new.generation && (state == TCP_ESTABLISHED || new.told)) {
		count_event(&job->told, now / BUDGET_WINDOW, job_budget);
		of->cookie = bpf_get_socket_cookie(sk);
		of->space = space_of(sk);
		tell_connection(&new, sk, of->cookie, state, now);
		of->told = now;
	}
	if (state == TCP_CLOSE)
		bpf_map_delete_elem(&connections, &key);
	return 0;
}

// Tells what the open connections of other network namespaces have moved: user space cannot ask for these. A socket that
// is closed at this moment is told by on_state, and its memory may be another one's already. It runs for each entry of
// connections, and then once without one.
SEC("iter/bpf_map_elem")
int tell_open(struct bpf_iter__bpf_map_elem *ctx)
{
	const struct opened *of = ctx->value;
	const u64 *key = ctx->key;
	struct opened now_of;
	struct sock *sk;
	struct job *job;
	u32 slot;
	u64 now;

	if (!key || !of)
		return 0;
	now_of = *of;
	if (!now_of.told || !now_of.space || now_of.space == own_space)
		return 0;
	slot = now_of.slot;
	job = bpf_map_lookup_elem(&jobs, &slot);
	if (!job || job->generation != now_of.generation)
		return 0;
	sk = (struct sock *)*key;
	if ((u64)FIELD(sock, sk, __sk_common.skc_cookie.counter) != now_of.cookie)
		return 0;
	now = bpf_ktime_get_ns();
	count_event(&job->told, now / BUDGET_WINDOW, job_budget);
	tell_connection(&now_of, sk, now_of.cookie, TCP_ESTABLISHED, now);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx[0];
	struct task_struct *child = (struct task_struct *)ctx[1];
	struct thread *of = thread_of(parent);
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
		tell_began(th, child, now);
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
	th = thread_of(p);
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
	new.stolen_at = ~0ULL; // unknown
	new.told = 1; // by us, not by a switch at this moment
	new.fetched = p->ioac.read_bytes;
	new.chars = p->ioac.rchar;
	new.moved = new.fetched + new.chars;
	set_pause(&new.pause, p, state_of(state), 0);
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
	if (!tell_began(th, p, now)) {
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
	th = thread_of(p);
	if (!th || !th->told || !job_of(th))
		return 0;
	since = *(volatile u64 *)&th->claim;
	if (since <= CLAIMED || since + LONG_PAUSE > bpf_ktime_get_ns())
		return 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e)
		return 0; // the next round, then
	// While the claim is since, the sum does not change. Its growth comes with the next event.
	set_sum(e, SUM_OUT, th, p->tgid, since);
	if (__sync_val_compare_and_swap(&th->claim, since, CLAIMED) == since)
		bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	else
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
	return 0;
}
