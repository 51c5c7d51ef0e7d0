/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * The work area of what a thread does itself and is sampled at once, on its own CPU: page faults, growth,
 * allocations, contention in the kernel, requests. Two of them at a time: while the stack of one is read, an interrupt may find
 * a lock taken or issue a request.
 */
#ifndef CANDELA_EVENT_AREA_H
#define CANDELA_EVENT_AREA_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "maps.h"
#include "threads.h"
#include "user_stack.h"

enum {
	/* How many of a CPU's events may be under way. What comes on top of them is counted as lost. */
	EVENT_AREAS = 2,
};

/* Not 0 for the areas of a CPU that are in use. */
struct areas_in_use {
	__u32 in_use[EVENT_AREAS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct areas_in_use);
} event_nesting SEC(".maps");

/* Behind the areas of the perf event, of off_cpu.h and of the iterators: those of one depth after those of another. */
static __always_inline __u32 event_area(__u32 depth)
{
	return (2 + depth) * settings.possible_cpus + 1 + bpf_get_smp_processor_id();
}

static __always_inline struct areas_in_use *event_areas_in_use(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&event_nesting, &first);
}

/*
 * The area of one depth, 0 while it is in use. What is entered must be left. Exchanged and not counted: where
 * preemption cannot be disabled, who came first does not leave last.
 */
static __always_inline struct scratch *enter_area_of_depth(__u32 depth)
{
	struct areas_in_use *areas = event_areas_in_use();
	struct scratch *scratch = scratch_of(event_area(depth));

	if (!areas || !scratch || __sync_lock_test_and_set(&areas->in_use[depth], 1))
		return 0;
	scratch->area = event_area(depth);
	return scratch;
}

/* For what may come while another event is looked at. */
static __always_inline struct scratch *enter_event_area(void)
{
	struct scratch *scratch = enter_area_of_depth(0);

	return scratch ? scratch : enter_area_of_depth(1);
}

/* For what our own look at another event may cause: none then. */
static __always_inline struct scratch *enter_outermost_event_area(void)
{
	return enter_area_of_depth(0);
}

static __always_inline void leave_event_area(const struct scratch *scratch)
{
	struct areas_in_use *areas = event_areas_in_use();

	if (areas)
		areas->in_use[scratch->area == event_area(0) ? 0 : 1] = 0;
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
	return append_user_stack(scratch, scratch->area, end);
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
