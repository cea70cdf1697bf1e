// The work of a thread to fetch data from storage, and the tracepoints that show it.
//
// SPDX-License-Identifier: GPL-2.0-only OR MIT

#pragma once

#include "pause.bpf.h"

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
