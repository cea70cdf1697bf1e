// System calls of both architectures.
//
// SPDX-License-Identifier: GPL-2.0-only OR MIT

#pragma once

#include "kernel.bpf.h"

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
