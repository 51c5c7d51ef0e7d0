/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * Who ends waits: the thread that wakes another one. There are as many wake-ups as switches, and each costs a look
 * into task storage: only where somebody asks for it.
 */
#ifndef CANDELA_WAKERS_H
#define CANDELA_WAKERS_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "off_cpu.h"

enum {
	/* THREAD_SIZE of x86-64. */
	KERNEL_STACK_BYTES = 16384,
};

static __always_inline bool is_on_stack_of(const struct task_struct *task, void *address)
{
	__u64 number;

	/* As a number: the verifier does not let pointers be compared. */
	bpf_probe_read_kernel(&number, sizeof(number), &address);
	return number - (__u64)task->stack < KERNEL_STACK_BYTES;
}

/*
 * Whether a task does what runs, rather than an interrupt of it: these run on stacks of their own, or where they
 * interrupt a program on the task's, which is in no system call then.
 */
static __always_inline bool acts_itself(struct task_struct *task, void *address)
{
	const struct pt_regs *registers = (const struct pt_regs *)bpf_task_pt_regs(task);

	if (!is_on_stack_of(task, address))
		return false;
	return is_kernel_thread(task) || (long)registers->orig_ax >= 0;
}

SEC("tp_btf/sched_waking")
int off_cpu_wake(__u64 *arguments)
{
	struct task_struct *woken = (struct task_struct *)arguments[0];
	struct task_struct *waker = bpf_get_current_task_btf();
	struct off_cpu_time *time = bpf_task_storage_get(&off_cpu_times, woken, 0, 0);

	if (!time || time->since_ns == 0 || !acts_itself(waker, arguments))
		return 0;
	bpf_probe_read_kernel(time->waker, sizeof(time->waker), waker->comm);
	return 0;
}

#endif
