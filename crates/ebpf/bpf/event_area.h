/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * The work area of what a thread does itself and is sampled at once, on its own CPU: page faults, growth,
 * allocations, contention in the kernel, requests. One of them at a time: reading a stack may fault, and an interrupt may find
 * a lock taken.
 */
#ifndef CANDELA_EVENT_AREA_H
#define CANDELA_EVENT_AREA_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "maps.h"
#include "threads.h"
#include "user_stack.h"

/* Not 0 while a CPU's area is in use. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} event_nesting SEC(".maps");

/* Behind the areas of the perf event, of off_cpu.h and of the iterators. */
static __always_inline __u32 event_area(void)
{
	return 2 * settings.possible_cpus + 1 + bpf_get_smp_processor_id();
}

/* Programs of tracepoints cannot be preempted. What is entered must be left. */
static __always_inline struct scratch *enter_event_area(void)
{
	__u32 first = 0, *nesting = bpf_map_lookup_elem(&event_nesting, &first);
	struct scratch *scratch = scratch_of(event_area());

	if (!nesting || *nesting || !scratch)
		return 0;
	*nesting = 1;
	return scratch;
}

static __always_inline void leave_event_area(void)
{
	__u32 first = 0, *nesting = bpf_map_lookup_elem(&event_nesting, &first);

	if (nesting)
		*nesting = 0;
}

/* Innermost frames that are no part of what is sampled. */
enum {
	/* Of a tracepoint: the program itself, and what runs it. */
	TRACEPOINT_FRAMES = 2,
	/* Of a perf event: it is where the kernel was interrupted. */
	INTERRUPT_FRAMES = 0,
};

/* The kernel stack that a program runs on, without so many of its frames; how many there are. */
static __always_inline __u16 own_kernel_stack(void *context, struct scratch *scratch, __u64 skipped)
{
	long bytes = bpf_get_stack(context, scratch->payload, MAX_KERNEL_FRAMES * 8, skipped);

	if (bytes <= 0 || bytes > MAX_KERNEL_FRAMES * 8) {
		count(COUNTER_KERNEL_STACK_ERROR);
		return 0;
	}
	return (__u64)bytes / 8;
}

/* Appends the current thread's user stack; the new end of the payload. A thread that ends has let go of its memory. */
static __always_inline __u32 append_own_user_stack(struct scratch *scratch, struct task_struct *task, __u32 end)
{
	if (is_kernel_thread(task) || task->flags & PF_EXITING || read_task_registers(scratch, task))
		return end;
	return append_user_stack(scratch, event_area(), end);
}

/*
 * Whether something of a size is a sample, and what it is worth: a big one always, of its own size, a small one
 * with the probability size / mean, worth the mean. So the sum is right on average.
 */
static __always_inline __u64 weigh_event(__u64 size, __u64 mean, __u32 *count)
{
	*count = 1;
	if (size >= mean)
		return size;
	if (size == 0 || ((__u64)bpf_get_prandom_u32() * mean) >> 32 >= size)
		return 0;
	*count = mean / size;
	if (((__u64)bpf_get_prandom_u32() * size) >> 32 < mean % size)
		++*count;
	return mean;
}

#endif
