// Records for user space, and how many of them a job may have.
//
// SPDX-License-Identifier: GPL-2.0-only OR MIT

#pragma once

#include "state.bpf.h"

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

enum { ONE_BY_ONE, MERGED, SUMMED };

// Counts the events of a thread that leaves its CPU and comes back, and returns how to report them: one by one
// (ONE_BY_ONE), as part of a sum of waits for storage (MERGED), or of one of anything (SUMMED).
static __always_inline int how_to_report(struct thread *th, struct job *job, u64 now)
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
		count_event(&job->reported, window, job_budget);
		count_event(&all->reported, window, all_budget);
	}
	if ((job->reported.over || all->reported.over) && busy)
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

static __always_inline int report_began(struct thread *th, const struct task_struct *p, u64 at)
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
	th->reported = 1;
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

// Reports that the thread leaves its CPU. before is its previous switch.
static __always_inline int report_out(struct thread *th, const struct task_struct *p, u64 before, u64 at)
{
	struct out *e;

	if (!th->reported && !report_began(th, p, before))
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

// Reports that the thread gets a CPU. before is its previous switch.
static __always_inline int report_in(struct thread *th, const struct task_struct *p, u64 before, u64 at, u64 woken)
{
	struct in *e;

	if (!th->reported && !report_began(th, p, before))
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

// Reports and ends the sum of a thread: SUM_OUT as it leaves its CPU, SUM_IN as it runs on.
static __always_inline int report_sum(struct thread *th, u8 kind, const struct task_struct *p, u64 now)
{
	struct sum *e;

	if (!th->reported && !report_began(th, p, th->from))
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
