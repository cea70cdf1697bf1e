// What a thread pauses in, and the file that ends its wait.
//
// SPDX-License-Identifier: GPL-2.0-only OR MIT

#pragma once

#include "calls.bpf.h"
#include "report.bpf.h"

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

// Notes the first files that the current thread waits for in poll: in address, and how many in detail. One alone is
// like a read of that file.
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

#define JOBCTL_TRAP_FREEZE (1UL << 23) /* a cgroup of version 2 is frozen */

static __always_inline u8 state_of(const struct task_struct *task, u32 state)
{
	if (!state)
		return READY;
	if (state & 0xb0) // TASK_DEAD, EXIT_ZOMBIE, EXIT_DEAD
		return DEAD;
	if (state & 0x800c) // __TASK_STOPPED, __TASK_TRACED, TASK_FROZEN
		return STOPPED;
	if (state & 1 && task->jobctl & JOBCTL_TRAP_FREEZE)
		return STOPPED;
	return state & 2 ? BLOCKED : ASLEEP;
}

static __always_inline int for_storage(const struct pause *pause)
{
	return pause->iowait || pause->state == BLOCKED;
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

// Reports which of several files ended a wait.
__attribute__((noinline)) int report_found(struct thread *th, u64 files, u32 tgid, u64 at)
{
	struct pause found = {};
	struct file *file;
	struct out *e;

	if (!th || th->from || !th->reported)
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
