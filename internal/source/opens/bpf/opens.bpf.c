// Reports which files followed threads open and close. docs/internals/opens.md describes the design.
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
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1024,
	BPF_RB_NO_WAKEUP = 1,
};

// The helpers for task storage, paths and the ring buffer are for programs under a licence compatible with the GPL.
char LICENSE[] SEC("license") = "Dual MIT/GPL";

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

// Sizes that opens.go repeats.
enum {
	JOBS = 80, // schedule.MaxJobs
	PATH = 1024,
	ENDING = 16, // bytes of the end of a name, with its dot
	BUDGET = 256, // files of models in a budget window that are reported of a job, and as many others
};

#define BUDGET_WINDOW 100000000ULL /* ns */

// The parts of the kernel's structures that are read. The loader finds their places in the running kernel (CO-RE).
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct qstr {
	u32 len;
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};

struct path {
	void *mnt;
	struct dentry *dentry;
};

struct super_block {
	u32 s_dev;
};

struct inode {
	u16 i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	s64 i_size;
};

struct file {
	u32 f_mode;
	u32 f_flags;
	struct path f_path;
	struct inode *f_inode;
	s64 f_pos;
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
	int pid;
	int tgid;
	const struct cred *real_cred;
	void *bpf_storage; // of all programs
};

#pragma clang attribute pop

#define S_IFMT 0170000
#define S_IFREG 0100000

// Bits of file.f_mode and, the last one, of file.f_flags. They are the same from Linux 5.15 to 6.18.
#define FMODE_READ 1
#define FMODE_WRITE 2
#define FMODE_NOACCOUNT 0x20000000 // an overlay's own open of the file below it
#define OPEN_TO_EXECUTE 0x20

// Of whom the names of any files are reported. Those of models are of all that is followed.
enum { OF_NONE, OF_OWNER, OF_ALL };

// Values that the loader sets.
volatile const u32 others_of;
volatile const u32 owner_uid;
volatile const u32 owner_gid;
volatile const u64 min_size; // bytes of a file that is read, from which on it is reported

enum { OPENED = 1, CLOSED };

// An open or a close, and what follows it of a path.
struct event {
	u64 at; // ns on CLOCK_MONOTONIC
	u64 inode;
	s64 size;
	s64 position; // of CLOSED
	u32 device;
	u32 slot;
	u32 generation;
	u32 pid;
	u8 kind;
	u8 write;
	u8 model; // the name is one of a model
	u8 unused[5];
	char path[PATH]; // of OPENED, with the 0 at its end
};

#define HEAD __builtin_offsetof(struct event, path)

// Memory of a program that is too large for its stack. A program does not run twice on a CPU at a time.
struct scratch {
	struct event event;
	char name[ENDING];   // the last bytes of a name
	char ending[ENDING]; // from its last dot on, in lower case, and then zeros
};

// Of the scheduler's program: the first members of its structures.
struct thread {
	u32 slot;
	u32 generation;
};

struct job {
	u32 generation;
};

// What was reported of a job in a budget window. It is counted without a lock: an error costs a few events.
struct budget {
	u64 window;
	u32 told[2]; // others, and files of models
};

struct counters {
	u64 lost;           // events without room
	u64 left[JOBS + 1]; // events above the budget of each job
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2); // one for each program
	__type(key, u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, JOBS + 1);
	__type(key, u32);
	__type(value, struct budget);
} budgets SEC(".maps");

// The endings of names of models.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, char[ENDING]);
	__type(value, u8);
} endings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 512 << 10);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counters);
} counters SEC(".maps");

// Both are maps of the scheduler's programs, whose values are larger.
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

// Reports whether the agent may see which files a thread has open: as may_follow of the scheduler's programs.
static __always_inline int may_name(const struct task_struct *p)
{
	const struct cred *cred;
	u64 capabilities = ~0ULL;

	if (others_of != OF_OWNER)
		return others_of == OF_ALL;
	cred = BPF_CORE_READ(p, real_cred);
	// Before Linux 6.3 it is an array of the same size.
	bpf_core_read(&capabilities, sizeof(capabilities), &cred->cap_permitted);
	return !capabilities && BPF_CORE_READ(cred, uid.val) == owner_uid && BPF_CORE_READ(cred, euid.val) == owner_uid &&
	       BPF_CORE_READ(cred, suid.val) == owner_uid && BPF_CORE_READ(cred, gid.val) == owner_gid &&
	       BPF_CORE_READ(cred, egid.val) == owner_gid && BPF_CORE_READ(cred, sgid.val) == owner_gid;
}

// Reads the begin of the name of a file or folder.
static __always_inline u64 begin_of(const struct dentry *of)
{
	u64 name = 0;

	bpf_probe_read_kernel(&name, sizeof(name), BPF_CORE_READ(of, d_name.name));
	return name;
}

#define BYTES(a, b, c, d, e, f, g, h)                                                                                  \
	((u64)(a) | (u64)(b) << 8 | (u64)(c) << 16 | (u64)(d) << 24 | (u64)(e) << 32 | (u64)(f) << 40 | (u64)(g) << 48 |   \
	 (u64)(h) << 56)
#define FIRST_SIX 0xffffffffffffULL
#define FIRST_SEVEN 0xffffffffffffffULL

// Reports whether a file is one that a store of models keeps under a hash, as modelfile.IsBlob, which also looks at
// the digits.
static __always_inline int is_blob(const struct dentry *of, u32 length)
{
	const struct dentry *folder;

	if (length != 64 && length != 71)
		return 0;
	folder = BPF_CORE_READ(of, d_parent);
	if ((begin_of(folder) & FIRST_SIX) != BYTES('b', 'l', 'o', 'b', 's', 0, 0, 0))
		return 0;
	if (length == 71)
		return (begin_of(of) & FIRST_SEVEN) == BYTES('s', 'h', 'a', '2', '5', '6', '-', 0);
	return begin_of(BPF_CORE_READ(folder, d_parent)) == BYTES('m', 'o', 'd', 'e', 'l', 's', '-', '-');
}

// Reports whether the name of a file is that of a model.
static __always_inline int is_model(const struct dentry *of, struct scratch *s)
{
	u32 length = BPF_CORE_READ(of, d_name.len), skip, i, dot = ENDING, last = ENDING;
	const unsigned char *name = BPF_CORE_READ(of, d_name.name);
	char c;

	if (is_blob(of, length))
		return 1;
	skip = length > ENDING ? length - ENDING : 0;
	if (length < ENDING)
		last = length;
	if (bpf_probe_read_kernel(s->name, ENDING, name + skip)) // what follows a short name is in memory, too
		return 0;
	for (i = 0; i < ENDING; i++)
		if (i < last && s->name[i] == '.')
			dot = i;
	if (dot == ENDING)
		return 0;
	for (i = 0; i < ENDING; i++) {
		c = dot + i < last ? s->name[(dot + i) & (ENDING - 1)] : 0;
		s->ending[i] = c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
	}
	return bpf_map_lookup_elem(&endings, s->ending) != 0;
}

// Counts an event. It reports whether its job may have it.
static __always_inline int has_budget(struct event *e)
{
	u32 slot = e->slot, zero = 0, *told;
	struct budget *b = bpf_map_lookup_elem(&budgets, &slot);
	u64 window = e->at / BUDGET_WINDOW;
	struct counters *c;

	if (!b)
		return 0;
	if (b->window != window) {
		b->told[0] = b->told[1] = 0;
		b->window = window;
	}
	told = e->model ? &b->told[1] : &b->told[0];
	if (*told < BUDGET) {
		(*told)++;
		return 1;
	}
	c = bpf_map_lookup_elem(&counters, &zero);
	if (c && slot <= JOBS)
		__sync_fetch_and_add(&c->left[slot], 1);
	return 0;
}

static __always_inline void lose(void)
{
	u32 zero = 0;
	struct counters *c = bpf_map_lookup_elem(&counters, &zero);

	if (c)
		__sync_fetch_and_add(&c->lost, 1);
}

// Begins an event of the current thread. It reports whether there is one: the thread is followed, and the file is one
// that is reported.
static __always_inline int begin(struct scratch *s, struct file *f, struct task_struct *p, u8 kind)
{
	struct thread *th = bpf_task_storage_get(&threads, p, 0, 0);
	struct inode *inode = f->f_inode;
	struct event *e = &s->event;
	u32 mode = f->f_mode;
	struct job *job;
	u32 slot;

	if (!th || !inode || (inode->i_mode & S_IFMT) != S_IFREG)
		return 0;
	if (!(mode & (FMODE_READ | FMODE_WRITE)) || mode & FMODE_NOACCOUNT || f->f_flags & OPEN_TO_EXECUTE)
		return 0;
	e->write = !!(mode & FMODE_WRITE);
	e->size = inode->i_size;
	if (!e->write && e->size < (s64)min_size)
		return 0;
	slot = th->slot;
	job = bpf_map_lookup_elem(&jobs, &slot);
	if (!job || !job->generation || job->generation != th->generation)
		return 0;
	e->model = is_model(f->f_path.dentry, s);
	if (!e->model && (e->write || kind == CLOSED || !may_name(p)))
		return 0;
	e->at = bpf_ktime_get_ns();
	e->slot = slot;
	e->generation = th->generation;
	if (!has_budget(e))
		return 0;
	e->kind = kind;
	e->inode = inode->i_ino;
	e->device = inode->i_sb->s_dev;
	e->position = f->f_pos;
	e->pid = p->tgid;
	return 1;
}

// A file is being opened, and may be: what fails from here on is rare.
SEC("fentry/security_file_open")
int on_open(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)bpf_get_current_task_btf();
	struct file *f = (struct file *)ctx[0];
	struct scratch *s;
	u32 at = 0;
	long length;

	if (!p->bpf_storage)
		return 0; // as nearly all opens of the machine
	s = bpf_map_lookup_elem(&scratches, &at);
	if (!s || !begin(s, f, p, OPENED))
		return 0;
	length = bpf_d_path((void *)&f->f_path, s->event.path, PATH);
	if (length <= 0 || length > PATH)
		return 0; // it is longer than the names that looks take
	if (bpf_ringbuf_output(&events, &s->event, HEAD + length, BPF_RB_NO_WAKEUP))
		lose();
	return 0;
}

// A file is closed for the last time: no descriptor and no mapping of this open is left.
SEC("fentry/locks_remove_file")
int on_close(u64 *ctx)
{
	struct task_struct *p = (struct task_struct *)bpf_get_current_task_btf();
	struct file *f = (struct file *)ctx[0];
	struct scratch *s;
	u32 at = 1;

	if (!p->bpf_storage)
		return 0;
	s = bpf_map_lookup_elem(&scratches, &at);
	if (!s || !begin(s, f, p, CLOSED))
		return 0;
	if (bpf_ringbuf_output(&events, &s->event, HEAD, BPF_RB_NO_WAKEUP))
		lose();
	return 0;
}
