/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * The lock that a thread waits for, which its system call tells: user-space locks of all kinds sleep in
 * futex(2), and only those that are contended get there.
 */
#ifndef CANDELA_LOCKS_H
#define CANDELA_LOCKS_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "maps.h"
#include "user_stack.h"

enum {
	SYSTEM_CALL_FUTEX = 202,
	/* linux/futex.h; the bits above are no part of the operation. */
	FUTEX_OPERATIONS = 0x7f,
	FUTEX_WAIT = 0,
	FUTEX_LOCK_PI = 6,
	FUTEX_WAIT_BITSET = 9,
	FUTEX_WAIT_REQUEUE_PI = 11,
	FUTEX_LOCK_PI2 = 13,
	FUTEX_THREAD_ID = 0x3fffffff,
	/* From __lock to __owner in the pthread_mutex_t of the GNU C library. */
	OWNER_BEHIND_LOCK = 8,
	/* What its __lock holds when threads wait for it. Condition variables and semaphores wait for other values. */
	LOCKED_WITH_WAITERS = 2,
};

struct lock_wait {
	/* Of the futex; 0 when the thread waits for something else. */
	__u64 address;
	/*
	 * The id of the thread that holds it, in the process's pid namespace. The word says so in some kinds of
	 * locks only: whether it is a thread of the process is asked before it is believed. 0 when it cannot be
	 * read.
	 */
	__u32 holder;
	__u32 reserved;
};

/*
 * The lock that a thread is about to wait for or waits for. `other` is 0 when it is the current one, as in
 * read_user().
 */
static __always_inline void note_lock(struct task_struct *task, struct lock_wait *lock, struct task_struct *other)
{
	const struct pt_regs *registers = (const struct pt_regs *)bpf_task_pt_regs(task);
	__u32 operation, word = 0;
	bool has_holder;

	lock->address = 0;
	lock->holder = 0;
	if (registers->orig_ax != SYSTEM_CALL_FUTEX)
		return;
	operation = registers->si & FUTEX_OPERATIONS;
	has_holder = operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2;
	if (!has_holder && operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET &&
	    operation != FUTEX_WAIT_REQUEUE_PI)
		return;
	lock->address = registers->di;
	if (!has_holder && (__u32)registers->dx != LOCKED_WITH_WAITERS)
		return;
	if (read_user(&word, sizeof(word), lock->address + (has_holder ? 0 : OWNER_BEHIND_LOCK), other))
		return;
	lock->holder = word & FUTEX_THREAD_ID;
}

extern struct task_struct *bpf_task_from_pid(__s32 pid) __ksym __weak;
extern struct task_struct *bpf_task_from_vpid(__s32 pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *task) __ksym __weak;

/* Names the holder if it is another thread of the waiter's process; `is_current` as the waiter is. */
static __always_inline void name_holder(struct sample_header *header, __u32 holder_id, bool is_current)
{
	struct task_struct *holder;

	header->lock_holder[0] = 0;
	if (holder_id == 0)
		return;
	if (is_current && bpf_ksym_exists(bpf_task_from_vpid))
		holder = bpf_task_from_vpid(holder_id);
	else if (bpf_ksym_exists(bpf_task_from_pid))
		holder = bpf_task_from_pid(holder_id);
	else /* before Linux 6.2 */
		return;
	if (!holder)
		return;
	if (holder->tgid == header->pid && holder->pid != header->tid)
		bpf_probe_read_kernel(header->lock_holder, sizeof(header->lock_holder), holder->comm);
	bpf_task_release(holder);
}

#endif
