/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * Memory growth: by how much a process's private writable memory (VmData of /proc/PID/status) grows, by the stack
 * that asked for it.
 *
 * Whatever changes it (brk, mmap, mremap, mprotect) holds the process's memory lock for writing meanwhile, and
 * taking and releasing that lock is traced: two programs that run as often as memory is mapped, and none at other
 * system calls.
 */
#ifndef CANDELA_GROWTH_H
#define CANDELA_GROWTH_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "event_area.h"
#include "runs.h"

struct growth_start {
	/* What the thread's process had when the thread took the lock. */
	const struct mm_struct *memory;
	__u64 pages;
	/* When the thread's last sample was (CLOCK_MONOTONIC), and what its next one is worth at least; 0 before. */
	__u64 sampled_ns;
	__u64 mean_bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct growth_start);
} growth_starts SEC(".maps");

enum {
	/* A hundred samples a second of a thread, about. */
	GROWTH_NEAR_NS = 10 * 1000 * 1000,
	/* From the most that a sample is worth back to the least. */
	MOST_GROWTH_DOUBLINGS = 16,
};

SEC("tp_btf/mmap_lock_acquire_returned")
int growth_begin(__u64 *arguments)
{
	const struct mm_struct *memory = (const struct mm_struct *)arguments[0];
	struct task_struct *task = bpf_get_current_task_btf();
	struct growth_start *start;

	count_run(RUNS_GROWTH_BEGIN);
	/* The memory of another process. */
	if (memory != task->mm || is_kernel_thread(task) || !wanted(task->tgid))
		return 0;
	/* The image of a new program, which has not asked for anything yet, and whose stack is the one before. */
	if (BPF_CORE_READ_BITFIELD(task, in_execve))
		return 0;
	start = bpf_task_storage_get(&growth_starts, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!start) {
		count(COUNTER_LOST);
		return 0;
	}
	start->memory = memory;
	start->pages = memory->data_vm;
	return 0;
}

/*
 * What a sample of the thread is worth at least, now. A heap that is trimmed and grown again ten thousand times a
 * second would pay for as many stacks: the samples of a thread that come within GROWTH_NEAR_NS of each other are
 * worth twice as much each time, and half as much again for each doubling of the time without one. It does not depend
 * on the growth that is weighed, so sums stay right.
 */
static __always_inline __u64 growth_mean(const struct growth_start *start, __u64 now)
{
	__u64 mean = start->mean_bytes, elapsed = now - start->sampled_ns;
	int doublings;

	if (mean == 0)
		return settings.growth_mean_bytes;
	if (elapsed < GROWTH_NEAR_NS)
		return mean * 2 > settings.growth_most_mean_bytes ? settings.growth_most_mean_bytes : mean * 2;
	for (doublings = 0; doublings < MOST_GROWTH_DOUBLINGS && elapsed > 2 * GROWTH_NEAR_NS; doublings++) {
		elapsed /= 2;
		mean /= 2;
	}
	return mean < settings.growth_mean_bytes ? settings.growth_mean_bytes : mean;
}

static __always_inline void sample_growth(struct task_struct *task, struct growth_start *start, __u64 bytes)
{
	__u64 now = bpf_ktime_get_ns(), mean = growth_mean(start, now);
	struct scratch *scratch;
	__u32 samples;

	bytes = weigh_event(bytes, mean, &samples);
	if (bytes == 0)
		return;
	start->sampled_ns = now;
	start->mean_bytes = mean;
	scratch = enter_event_area();
	if (!scratch) {
		count(COUNTER_LOST);
		return;
	}
	fill_header(&scratch->header, RECORD_GROWTH, task, now);
	scratch->header.value = bytes;
	scratch->header.count = samples;
	finish_sample(scratch, append_own_user_stack(scratch, task, 0));
	leave_event_area(scratch);
}

SEC("tp_btf/mmap_lock_released")
int growth_end(__u64 *arguments)
{
	const struct mm_struct *memory = (const struct mm_struct *)arguments[0];
	struct task_struct *task = bpf_get_current_task_btf();
	struct growth_start *start;
	__u64 before;

	count_run(RUNS_GROWTH_END);
	if (memory != task->mm)
		return 0;
	start = bpf_task_storage_get(&growth_starts, task, 0, 0);
	if (!start || start->memory != memory)
		return 0;
	start->memory = 0;
	before = start->pages;
	if (memory->data_vm > before)
		sample_growth(task, start, (memory->data_vm - before) * PAGE_BYTES);
	return 0;
}

#endif
