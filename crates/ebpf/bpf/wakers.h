/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * Who ends waits: the thread that wakes another one. There are as many wake-ups as switches, and each costs a look
 * into task storage: only where somebody asks for it. Its stack, walked like any other, is told before the sample of
 * the wait, and only where there will be one.
 */
#ifndef CANDELA_WAKERS_H
#define CANDELA_WAKERS_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "event_area.h"
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

/* Behind the areas of event_area.h: a wake-up may come while those are in use. */
static __always_inline __u32 waker_area(void)
{
	return event_area(EVENT_AREAS);
}

/*
 * Whether the wait that ends now will be a sample: weigh() will draw the same number. A wait is longer in the end, by
 * what its thread waits for a CPU, so that some are samples without the stack.
 */
static __always_inline bool will_be_sample(struct off_cpu_time *time, __u64 now)
{
	__u64 mean_ns = pace.off_cpu_mean_ns;
	__u64 since = time->since_ns, until = on_wait_clock(now);
	struct wait wait = { .away_ns = until - since };

	if (!settings.all_waits && time->lock.address == 0)
		return false;
	if (since == 0 || since >= until || is_short(time, &wait))
		return false;
	if (until - since >= mean_ns)
		return true;
	return ((__u64)coming_random(time) * mean_ns) >> 32 < until - since;
}

/* Tells the stack of the current thread, which ends the wait of another one; false where there is no room. */
static __always_inline bool tell_waker(void *context, struct task_struct *waker, struct task_struct *woken, __u64 now)
{
	__u32 area = waker_area(), payload_bytes;
	struct scratch *scratch = scratch_of(area);
	struct sample_header *header;

	if (!scratch)
		return false;
	header = &scratch->header;
	fill_header(header, RECORD_WAKER, waker, now);
	header->woken_ns = now;
	header->count = woken->pid;
	header->value = 0;
	header->kernel_frames = own_kernel_stack(context, scratch, TRACEPOINT_FRAMES);
	payload_bytes = header->kernel_frames * 8;
	/* A thread that ends has let go of its memory. */
	if (!is_kernel_thread(waker) && !(waker->flags & PF_EXITING) && read_task_registers(scratch, waker) == 0)
		payload_bytes = append_user_stack(scratch, area, payload_bytes);
	return finish_record(scratch, payload_bytes) == 0;
}

SEC("tp_btf/sched_waking")
int off_cpu_wake(__u64 *arguments)
{
	struct task_struct *woken = (struct task_struct *)arguments[0];
	struct task_struct *waker = bpf_get_current_task_btf();
	struct off_cpu_time *time = bpf_task_storage_get(&off_cpu_times, woken, 0, 0);
	__u64 now;

	count_run(RUNS_OFF_CPU_WAKE);
	if (!time || time->since_ns == 0 || !acts_itself(waker, arguments))
		return 0;
	bpf_probe_read_kernel(time->waker, sizeof(time->waker), waker->comm);
	if (settings.wakers != WAKER_STACKS)
		return 0;
	now = bpf_ktime_get_ns();
	time->woken_ns = 0;
	if (!will_be_sample(time, now))
		return 0;
	if (tell_waker(arguments, waker, woken, now))
		time->woken_ns = now;
	else
		count(COUNTER_WAKER_STACKS_LOST);
	return 0;
}

#endif
