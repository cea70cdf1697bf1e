// TCP connections that followed threads open.
//
// SPDX-License-Identifier: GPL-2.0-only OR MIT

#pragma once

#include "pause.bpf.h"
#include "report.bpf.h"

static __always_inline u32 space_of(const struct sock *sk)
{
	struct net *net;

	if (!bpf_core_field_exists(struct ns_common, inum))
		return 0;
	net = FIELD(sock, sk, __sk_common.skc_net.net);
	return FIELD(net, net, ns.inum);
}

// Reports what a connection has moved.
static __always_inline void report_connection(const struct opened *of, struct sock *sk, u64 cookie, u8 state, u64 now)
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

// Reports when a connection that a followed thread has opened is established, and when it is closed. The thread calls
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
		if (!th || !job_of(th) || sk->sk_protocol != IPPROTO_TCP)
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
	if (job && job->generation == new.generation && (state == TCP_ESTABLISHED || new.reported)) {
		count_event(&job->reported, now / BUDGET_WINDOW, job_budget);
		of->cookie = bpf_get_socket_cookie(sk);
		of->space = space_of(sk);
		report_connection(&new, sk, of->cookie, state, now);
		of->reported = now;
	}
	if (state == TCP_CLOSE)
		bpf_map_delete_elem(&connections, &key);
	return 0;
}

// Reports what the open connections of other network namespaces have moved: user space cannot ask for these. on_state
// reports a socket that is closed at this moment, whose memory may be another one's already. It runs for each entry of
// connections, and then once without one.
SEC("iter/bpf_map_elem")
int report_open(struct bpf_iter__bpf_map_elem *ctx)
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
	if (!now_of.reported || !now_of.space || now_of.space == own_space)
		return 0;
	slot = now_of.slot;
	job = bpf_map_lookup_elem(&jobs, &slot);
	if (!job || job->generation != now_of.generation)
		return 0;
	sk = (struct sock *)*key;
	if ((u64)FIELD(sock, sk, __sk_common.skc_cookie.counter) != now_of.cookie)
		return 0;
	now = bpf_ktime_get_ns();
	count_event(&job->reported, now / BUDGET_WINDOW, job_budget);
	report_connection(&now_of, sk, now_of.cookie, TCP_ESTABLISHED, now);
	return 0;
}
