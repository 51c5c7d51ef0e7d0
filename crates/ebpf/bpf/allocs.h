/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * Sampled allocations, told by the library that candela-preload has put into a program: it calls one of two
 * functions, which do nothing but be seen here. Which allocations are samples and which of them still
 * live is decided there; here they get their stacks.
 */
#ifndef CANDELA_ALLOCS_H
#define CANDELA_ALLOCS_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "event_area.h"
#include "maps.h"
#include "threads.h"
#include "user_stack.h"

/* What a thread has told last. */
struct told_allocation {
	/* The program that told it: exec begins to count anew. */
	__u64 program;
	/* Sequence numbers and one more each; 0 is none. */
	__u64 sampled;
	__u64 freed;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct told_allocation);
} told_allocations SEC(".maps");

/*
 * Whether the current thread has told this just before. Containers of one image have its files from one place, under
 * a path of their own each: user space cannot see that they are one file, watches it once for each of them, and
 * each call runs our program as often.
 */
static __always_inline int tells_again(struct task_struct *task, int is_end, __u32 sequence)
{
	struct told_allocation *told;
	__u64 now = (__u64)sequence + 1;

	told = bpf_task_storage_get(&told_allocations, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!told)
		return 0;
	if (told->program != (__u64)task->mm) {
		told->program = (__u64)task->mm;
		told->sampled = 0;
		told->freed = 0;
	}
	if (now == (is_end ? told->freed : told->sampled))
		return 1;
	if (is_end)
		told->freed = now;
	else
		told->sampled = now;
	return 0;
}

static __always_inline void sample_allocation(struct pt_regs *registers, struct task_struct *task, __u64 stands_for)
{
	__u32 payload_bytes = ALLOCATION_WORDS * 8;
	struct scratch *scratch = enter_event_area();
	struct allocation *allocation;

	if (!scratch) {
		count(COUNTER_LOST);
		return;
	}
	fill_header(&scratch->header, RECORD_ALLOC, task, bpf_ktime_get_ns());
	scratch->header.value = 0;
	scratch->header.run_queue_ns = 0;
	scratch->header.count = 1;
	/* The words stand where other samples have their kernel frames: nobody allocates for the kernel. */
	scratch->header.kernel_frames = ALLOCATION_WORDS;
	allocation = (struct allocation *)scratch->payload;
	allocation->address = registers->di;
	allocation->size = registers->si;
	allocation->sequence = registers->dx;
	allocation->interval = registers->cx;
	allocation->stands_for = stands_for;
	if (bpf_probe_read_kernel(&scratch->task_registers, sizeof(scratch->task_registers), registers) == 0)
		payload_bytes = append_user_stack(scratch, scratch->area, payload_bytes);
	finish_sample(scratch, payload_bytes);
	leave_event_area(scratch);
}

SEC("uprobe")
int alloc_sampled(struct pt_regs *registers)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 stands_for = pace.allocations_per_sample;

	if (!wanted(task->tgid) || tells_again(task, 0, registers->dx))
		return 0;
	/* By chance: what a program does again and again must not meet one number of a count. Of those left out the end
	 * is told all the same, and means nothing to who has not heard of them. */
	if (stands_for > 1 && bpf_get_prandom_u32() % stands_for)
		return 0;
	/* The area is the CPU's. Where preemption cannot be disabled (before 6.10), another thread may get the CPU
	 * meanwhile, and loses its sample. */
	if (bpf_preempt_disable) {
		bpf_preempt_disable();
		sample_allocation(registers, task, stands_for);
		bpf_preempt_enable();
	} else {
		sample_allocation(registers, task, stands_for);
	}
	return 0;
}

SEC("uprobe")
int alloc_freed(struct pt_regs *registers)
{
	struct free_record record = {
		.kind = RECORD_FREE,
		.pid = bpf_get_current_pid_tgid() >> 32,
		.time_ns = bpf_ktime_get_ns(),
		.address = registers->di,
		.sequence = registers->si,
	};

	if (!wanted(record.pid) || tells_again(bpf_get_current_task_btf(), 1, registers->si))
		return 0;
	if (bpf_ringbuf_output(&samples, &record, sizeof(record), wakeup_flag(false)))
		count(COUNTER_FREES_LOST);
	return 0;
}

#endif
