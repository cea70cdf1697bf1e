// The parts of the kernel that the programs read: types, structures, and numbers of its headers.
//
// SPDX-License-Identifier: GPL-2.0-only OR MIT

#pragma once

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
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1024,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
};

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

struct task_struct {
	struct sched_entity se;
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	unsigned long jobctl;
	int on_cpu;
	unsigned in_iowait : 1;
	int pid;
	int tgid;
	unsigned long nvcsw;
	unsigned long nivcsw;
	char comm[16];
	struct files_struct *files;
	struct task_io_accounting ioac;
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

struct gendisk {
	int major;
	int first_minor;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	u32 cmd_flags;
	u32 rq_flags;
	u32 __data_len;
	u64 start_time_ns;
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

// The kernel's enum req_op, in the low bits of request.cmd_flags and bio.bi_opf.
#define REQ_OP_MASK 0xff
#define REQ_OP_FLUSH 2
#define REQ_OP_DISCARD 3

#define PF_KTHREAD 0x00200000

#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
enum { TCP_ESTABLISHED = 1, TCP_SYN_SENT = 2, TCP_CLOSE = 7 };

#define ANON_INODE_FS 0x09041934
