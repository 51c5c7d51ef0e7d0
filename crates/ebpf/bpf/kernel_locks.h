/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/* Waits for locks of the kernel itself, spinning or asleep, by the stack that waits. */
#ifndef CANDELA_KERNEL_LOCKS_H
#define CANDELA_KERNEL_LOCKS_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "event_area.h"
#include "runs.h"

/* The wait that goes on; an interrupt in it may wait for another lock, which is then no wait of the thread. */
struct contention {
	__u64 lock;
	__u64 since_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct contention);
} contentions SEC(".maps");

SEC("tp_btf/contention_begin")
int kernel_lock_begin(__u64 *arguments)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct contention *contention;

	count_run(RUNS_KERNEL_LOCK_BEGIN);
	if (task->pid == 0 || !wanted(task->tgid))
		return 0;
	contention = bpf_task_storage_get(&contentions, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!contention) {
		count(COUNTER_LOST);
		return 0;
	}
	/* Some locks say so each time that they try again. */
	if (contention->lock != 0)
		return 0;
	contention->since_ns = bpf_ktime_get_ns();
	contention->lock = arguments[0];
	return 0;
}

static __always_inline void sample_contention(void *context, struct task_struct *task, __u64 waited_ns, __u64 now,
					      __u64 lock)
{
	struct scratch *scratch;
	__u32 samples, payload_bytes;

	waited_ns = weigh_event(waited_ns, settings.kernel_lock_mean_ns, &samples);
	if (waited_ns == 0)
		return;
	scratch = enter_event_area();
	if (!scratch) {
		count(COUNTER_LOST);
		return;
	}
	fill_header(&scratch->header, RECORD_KERNEL_LOCK, task, now);
	scratch->header.value = waited_ns;
	scratch->header.count = samples;
	scratch->header.lock_address = lock;
	scratch->header.kernel_frames = own_kernel_stack(context, scratch, TRACEPOINT_FRAMES);
	payload_bytes = scratch->header.kernel_frames * 8;
	finish_sample(scratch, append_own_user_stack(scratch, task, payload_bytes));
	leave_event_area(scratch);
}

SEC("tp_btf/contention_end")
int kernel_lock_end(__u64 *arguments)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct contention *contention = bpf_task_storage_get(&contentions, task, 0, 0);
	__u64 now, since, lock = arguments[0];

	count_run(RUNS_KERNEL_LOCK_END);
	if (!contention || contention->lock != lock)
		return 0;
	since = contention->since_ns;
	now = bpf_ktime_get_ns();
	if (now > since)
		sample_contention(arguments, task, now - since, now, lock);
	/* Last: what the sample itself waits for, such as room in the ring buffer, is no wait of its own. */
	contention->lock = 0;
	return 0;
}

#endif
