// All programs. They are loaded together, so that those that time disks find the jobs that threads are followed for.
//
// SPDX-License-Identifier: GPL-2.0-only OR MIT

#include "connections.bpf.h"
#include "fetch.bpf.h"
#include "latency.bpf.h"
#include "sched.bpf.h"

// The helpers for task storage and the ring buffer are for programs under a licence compatible with the GPL.
char LICENSE[] SEC("license") = "Dual MIT/GPL";
