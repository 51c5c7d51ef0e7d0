/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * Requests to block devices, by the stack that made them. The stack is there when a request begins, how long it
 * takes when it is done: two records, which user space puts together.
 */
#ifndef CANDELA_BLOCK_IO_H
#define CANDELA_BLOCK_IO_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "event_area.h"
#include "runs.h"

/* Requests that have a sample and are not done yet, by their address. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, __u8);
} block_requests SEC(".maps");

static __always_inline void sample_request(void *context, struct scratch *scratch, struct task_struct *task,
					   __u64 request)
{
	__u32 payload_bytes;
	__u8 present = 1;

	/* Nobody could tell how long it takes. */
	if (bpf_map_update_elem(&block_requests, &request, &present, BPF_ANY)) {
		count(COUNTER_LOST);
		return;
	}
	fill_header(&scratch->header, RECORD_BLOCK_IO, task, bpf_ktime_get_ns());
	scratch->header.value = request;
	scratch->header.count = settings.request_interval;
	scratch->header.kernel_frames = own_kernel_stack(context, scratch, TRACEPOINT_FRAMES);
	payload_bytes = scratch->header.kernel_frames * 8;
	finish_sample(scratch, append_own_user_stack(scratch, task, payload_bytes));
}

/* Whose thread this runs in makes the request. */
SEC("tp_btf/block_io_start")
int block_io_begin(__u64 *arguments)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 request = arguments[0];
	struct scratch *scratch;

	count_run(RUNS_BLOCK_IO_BEGIN);
	/* An address that is used again: one that was merged into another request has no end. */
	bpf_map_delete_elem(&block_requests, &request);
	if (!wanted(task->tgid) || bpf_get_prandom_u32() % settings.request_interval != 0)
		return 0;
	scratch = enter_event_area();
	if (!scratch) {
		count(COUNTER_LOST);
		return 0;
	}
	sample_request(arguments, scratch, task, request);
	leave_event_area(scratch);
	return 0;
}

/* In an interrupt, whoever runs. */
SEC("tp_btf/block_io_done")
int block_io_end(__u64 *arguments)
{
	struct block_io_done record = {
		.kind = RECORD_BLOCK_IO_DONE,
		.request = arguments[0],
		.time_ns = bpf_ktime_get_ns(),
	};

	count_run(RUNS_BLOCK_IO_END);
	if (bpf_map_delete_elem(&block_requests, &record.request))
		return 0;
	if (bpf_ringbuf_output(&samples, &record, sizeof(record), BPF_RB_NO_WAKEUP))
		count(COUNTER_RING_FULL);
	return 0;
}

#endif
