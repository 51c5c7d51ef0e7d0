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

static __always_inline void sample_allocation(struct pt_regs *registers, struct task_struct *task)
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
	if (bpf_probe_read_kernel(&scratch->task_registers, sizeof(scratch->task_registers), registers) == 0)
		payload_bytes = append_user_stack(scratch, event_area(), payload_bytes);
	finish_sample(scratch, payload_bytes);
	leave_event_area();
}

SEC("uprobe")
int alloc_sampled(struct pt_regs *registers)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!wanted(task->tgid))
		return 0;
	/* The area is the CPU's. Where preemption cannot be disabled (before 6.10), another thread may get the CPU
	 * meanwhile, and loses its sample. */
	if (bpf_preempt_disable) {
		bpf_preempt_disable();
		sample_allocation(registers, task);
		bpf_preempt_enable();
	} else {
		sample_allocation(registers, task);
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

	if (!wanted(record.pid))
		return 0;
	if (bpf_ringbuf_output(&samples, &record, sizeof(record), wakeup_flag(false)))
		count(COUNTER_FREES_LOST);
	return 0;
}

#endif
