// Follows the threads of jobs through the scheduler's tracepoints. docs/internals/schedule.md describes the design.
//
// SPDX-License-Identifier: GPL-2.0-only OR MIT

#pragma once

#include "pause.bpf.h"
#include "report.bpf.h"

// A non-leader that calls exec gets the leader's number: the one that it had ends, and another begins.
static __always_inline void renumber(struct thread *th, struct task_struct *p, u64 now)
{
	struct out *e;

	if (th->reported) {
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
	report_began(th, p, now);
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
		report_sum(th, SUM_OUT, p, since);
	if (seen && th->pause.several && since + NAMED_PAUSE < woken)
		report_found(th, (u64)BPF_CORE_READ(p, files), p->tgid, now);
	if (!th->from && report_in(th, p, since, now, woken))
		return;
	if (!th->from)
		begin_sum(th, since);
	add_pause(th, since, woken, now);
}

static __always_inline void enter(struct thread *th, struct task_struct *p, u64 now)
{
	struct job *job = job_of(th);

	if (!job || th->running == 1)
		return;
	arrive(th, p, now, 1);
}

// The thread was not seen to get the CPU that it leaves now. Some kernels of virtual machines hide switches of threads
// of the hypervisor's agent, and adopt may have seen the thread just before it got its CPU. It did when it was ready.
static __always_inline void enter_unseen(struct thread *th, const struct task_struct *p)
{
	arrive(th, p, th->woken > th->since ? th->woken : th->since, 0);
}

// Reports whether the sum of a thread ends now that it leaves its CPU.
static __always_inline int ends_sum(struct thread *th, int how, u64 now)
{
	if (how == SUMMED)
		return now - th->from >= SUM_LENGTH;
	return how == ONE_BY_ONE || !th->merges || now - th->from >= MERGE_LENGTH;
}

static __always_inline void leave(struct thread *th, struct task_struct *p, u8 state, u64 now)
{
	struct job *job = job_of(th);
	u64 since, stolen, lost;
	int how;

	if (!job)
		return;
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
	how = how_to_report(th, job, now);
	if (how == ONE_BY_ONE && !th->from && report_out(th, p, since, now))
		return;
	if (!th->from) {
		begin_sum(th, since);
		th->merges = how == MERGED;
	} else if (how == SUMMED) {
		th->merges = 0; // from now on the sum takes pauses for anything
	}
	th->ran += now - since;
	if ((ends_sum(th, how, now) || state == DEAD) && report_sum(th, SUM_OUT, p, now))
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
		leave(leaves, prev, state_of(prev, state), now);
	if (enters)
		enter(enters, next, now);
	return 0;
}

// Reports whether the kernel is in an interrupt. On x86, the count is a variable of the CPU. Its address is that of the
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

// Reports how a thread is called.
static __always_inline void report_name(const struct task_struct *p, const char *name, u64 at)
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

// Reports the name of a thread that is not followed and ends a long pause, unless it ended the one before, too.
static __always_inline void name_waker(struct thread *th)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task_btf();

	if (th->waker.kind != USER_THREAD || th->running || th->named == th->waker.tid ||
	    th->since + NAMED_PAUSE > th->woken || bpf_task_storage_get(&threads, current, 0, 0))
		return;
	th->named = th->waker.tid;
	report_name(current, current->comm, th->woken);
}

// The current thread wakes another one. What it did before is reported first, or else how far it was would not be known
// at that moment.
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
	count_event(&job->reported, now / BUDGET_WINDOW, job_budget);
	by->ran += now - by->since;
	by->since = now;
	report_sum(by, SUM_IN, current, now);
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

	if (th && th->reported && job_of(th))
		report_name(p, (const char *)ctx[1], bpf_ktime_get_ns());
	return 0;
}

// A followed thread creates another one.
SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx[0];
	struct task_struct *child = (struct task_struct *)ctx[1];
	struct thread *of = thread_of(parent);
	struct thread *th, new = {};
	u64 now;

	if (!of || !job_of(of))
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
		report_began(th, child, now);
	return 0;
}

// Reports whether a thread is on a CPU. The member has one byte in Linux 7.2, and four before.
static __always_inline int on_cpu(const struct task_struct *task)
{
	return BPF_CORE_READ_BITFIELD(task, on_cpu) != 0;
}

// Adopts the threads of the groups in joining. A thread that is off its CPU is reported so, if it cannot have been
// on one meanwhile.
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
	if (!member)
		return 0;
	th = thread_of(p);
	if (th && job_of(th))
		return 0;

	now = bpf_ktime_get_ns();
	switches = p->nvcsw + p->nivcsw;
	running = on_cpu(p);
	state = p->__state;
	new.slot = member->slot;
	new.generation = member->generation;
	new.tid = p->pid;
	new.since = now;
	new.running = running ? MAYBE : 0;
	new.stolen_at = ~0ULL; // unknown
	new.reported = 1; // by us, not by a switch at this moment
	new.fetched = p->ioac.read_bytes;
	new.chars = p->ioac.rchar;
	new.moved = new.fetched + new.chars;
	set_pause(&new.pause, p, state_of(p, state), 0);
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
	if (!report_began(th, p, now)) {
		th->reported = 0;
		return 0;
	}
	if (running || on_cpu(p) || p->nvcsw + p->nivcsw != switches || p->__state != state)
		return 0;
	report_out(th, p, now, now);
	return 0;
}

// Reports the sums of threads that paused within one and do not come back soon.
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
	if (!th || !th->reported || !job_of(th))
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
