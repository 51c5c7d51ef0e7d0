/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/* Events that somebody names: tracepoints, functions of programs, counters. Each hit is a sample. */
#ifndef CANDELA_EXPLICIT_H
#define CANDELA_EXPLICIT_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "event_area.h"

/* What a link's cookie tells; src/explicit.rs makes it. */
enum {
	COOKIE_EVENT = 0xff, /* which event it is */
	COOKIE_IS_EXIT = 1 << 8, /* of a system call: its end, not its beginning */
	COOKIE_CALL_SHIFT = 16, /* the number of the system call and one; 0: not of one */
};

enum event_place {
	IN_PROGRAM,
	IN_KERNEL_TRACED,
	IN_KERNEL_INTERRUPTED,
};

static __always_inline int sample_event(void *context, __u64 cookie, __u64 value, enum event_place place)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *scratch;
	__u32 payload_bytes;

	if (task->pid == 0 || !wanted(task->tgid))
		return 0;
	scratch = enter_event_area();
	if (!scratch) {
		count(COUNTER_LOST);
		return 0;
	}
	fill_header(&scratch->header, RECORD_EXPLICIT, task, bpf_ktime_get_ns());
	scratch->header.event = cookie & COOKIE_EVENT;
	scratch->header.value = value;
	scratch->header.count = 1;
	if (place == IN_KERNEL_TRACED)
		scratch->header.kernel_frames = own_kernel_stack(context, scratch, TRACEPOINT_FRAMES);
	if (place == IN_KERNEL_INTERRUPTED) {
		scratch->header.flags |= SAMPLE_IN_KERNEL;
		scratch->header.kernel_frames = own_kernel_stack(context, scratch, INTERRUPT_FRAMES);
	}
	payload_bytes = scratch->header.kernel_frames * 8;
	finish_sample(scratch, append_own_user_stack(scratch, task, payload_bytes));
	leave_event_area(scratch);
	return 0;
}

/* Arguments of sys_enter: registers, number; of sys_exit: registers, result. */
static __always_inline bool is_of_call(const __u64 *arguments, __u64 cookie)
{
	const struct pt_regs *registers = (const struct pt_regs *)arguments[0];
	__u64 wanted_call = cookie >> COOKIE_CALL_SHIFT, call = arguments[1], segment;

	if (wanted_call == 0)
		return true;
	/* The numbers of 32-bit programs are others. */
	if (bpf_probe_read_kernel(&segment, sizeof(segment), &registers->cs) ||
	    (segment & 0xffff) == COMPAT_CODE_SEGMENT)
		return false;
	if (cookie & COOKIE_IS_EXIT && bpf_probe_read_kernel(&call, sizeof(call), &registers->orig_ax))
		return false;
	return call == wanted_call - 1;
}

SEC("raw_tp")
int explicit_tracepoint(__u64 *arguments)
{
	/* Before Linux 6.10 such links have none, and a recording one tracepoint. */
	bool has_cookie = bpf_core_field_exists(struct bpf_raw_tp_link, cookie);
	__u64 cookie = has_cookie ? bpf_get_attach_cookie(arguments) : settings.tracepoint_cookie;

	if (!is_of_call(arguments, cookie))
		return 0;
	return sample_event(arguments, cookie, 1, IN_KERNEL_TRACED);
}

SEC("uprobe")
int explicit_function(struct pt_regs *registers)
{
	__u64 cookie = bpf_get_attach_cookie(registers);

	/* The area is the CPU's, and nothing else keeps another thread from it: see alloc_sampled(). */
	if (bpf_preempt_disable) {
		bpf_preempt_disable();
		sample_event(registers, cookie, 1, IN_PROGRAM);
		bpf_preempt_enable();
	} else {
		sample_event(registers, cookie, 1, IN_PROGRAM);
	}
	return 0;
}

SEC("perf_event")
int explicit_counter(struct bpf_perf_event_data *event)
{
	bool in_kernel = (event->regs.cs & 3) == 0;

	return sample_event(event, bpf_get_attach_cookie(event), event->sample_period,
			    in_kernel ? IN_KERNEL_INTERRUPTED : IN_PROGRAM);
}

#endif
