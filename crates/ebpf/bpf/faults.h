/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * Page faults: all of them counted, one stack in so many.
 *
 * The kernel counts the faults of each thread itself. A sample stands for those since the thread's last
 * one, so that all samples together are exactly what the kernel counted, but for a last fault of a thread
 * that it traces and does not count, such as one that ends in SIGSEGV. What is left when a thread ends
 * or a recording does is a sample without a stack. A new thread's first faults give stacks more often,
 * about the first, the third, the seventh and so on, so that short programs have some, too.
 */
#ifndef CANDELA_FAULTS_H
#define CANDELA_FAULTS_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "maps.h"
#include "event_area.h"
#include "threads.h"
#include "runs.h"

/* === maps === */

struct fault_progress {
	/* The thread's faults that are in samples. */
	__u64 sampled;
	/* How many make a sample on average; 0 before the first fault that was seen. */
	__u32 interval;
	/* How many make the next one: random, lest a program that faults in turns is seen at one of them only. */
	__u32 due;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct fault_progress);
} fault_progresses SEC(".maps");

/* === samples === */

static __always_inline __u64 faults_of(const struct task_struct *task)
{
	return task->min_flt + task->maj_flt;
}

/* Claims the faults up to `total` for a sample; how many there are, 0 when another CPU was faster. */
static __always_inline __u32 claim_faults(struct fault_progress *progress, __u64 total)
{
	__u64 sampled = progress->sampled;

	if (total <= sampled || __sync_val_compare_and_swap(&progress->sampled, sampled, total) != sampled)
		return 0;
	return total - sampled;
}

/* A sample of faults whose stacks are gone. */
static __always_inline void sample_rest(struct scratch *scratch, struct task_struct *task,
					struct fault_progress *progress, __u64 now)
{
	__u32 claimed = claim_faults(progress, faults_of(task));

	if (claimed == 0)
		return;
	fill_header(&scratch->header, RECORD_FAULTS, task, now);
	scratch->header.value = 0;
	scratch->header.count = claimed;
	finish_sample(scratch, 0);
}

static __always_inline void sample_fault(struct scratch *scratch, struct task_struct *task,
					 struct fault_progress *progress, __u64 total)
{
	__u32 claimed = claim_faults(progress, total);

	if (claimed == 0)
		return;
	fill_header(&scratch->header, RECORD_FAULTS, task, bpf_ktime_get_ns());
	scratch->header.value = 0;
	scratch->header.count = claimed;
	finish_sample(scratch, append_own_user_stack(scratch, task, 0));
}

static __always_inline int on_fault(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fault_progress *progress;
	struct scratch *scratch;
	/* With this one, which the kernel counts when it has been handled. */
	__u64 total = faults_of(task) + 1;
	bool is_exiting = task->flags & PF_EXITING;

	if (is_kernel_thread(task) || !wanted(task->tgid))
		return 0;
	progress = bpf_task_storage_get(&fault_progresses, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!progress) {
		count(COUNTER_LOST);
		return 0;
	}
	if (progress->interval == 0) {
		/* Of a thread that was there before us we have seen none; a new one may have had some untraced, and
		 * the iterator may be at it. */
		if (task->start_boottime < settings.started_boottime_ns)
			progress->sampled = total - 1;
		progress->due = 1;
		/* Last: the iterator goes by it. */
		barrier();
		progress->interval = 1;
	}
	if (!is_exiting && total < progress->sampled + progress->due)
		return 0;
	/* A fault of our own reading is in the next sample. */
	scratch = enter_outermost_event_area();
	if (!scratch)
		return 0;
	sample_fault(scratch, task, progress, total);
	if (progress->interval < settings.fault_interval)
		progress->interval *= 2;
	if (progress->interval > settings.fault_interval)
		progress->interval = settings.fault_interval;
	progress->due = progress->interval / 2 + 1 + bpf_get_prandom_u32() % progress->interval;
	leave_event_area(scratch);
	return 0;
}

/* === programs === */

SEC("tp_btf/page_fault_user")
int fault_in_user(void *arguments)
{
	count_run(RUNS_FAULT_IN_USER);
	return on_fault();
}

/* The kernel reads or writes memory of the process for it. */
SEC("tp_btf/page_fault_kernel")
int fault_in_kernel(void *arguments)
{
	count_run(RUNS_FAULT_IN_KERNEL);
	return on_fault();
}

/* Of a thread whose faults were all untraced, as those of MAP_POPULATE are; 0 when it is not asked about. */
static __always_inline struct fault_progress *untraced_faults(struct task_struct *task)
{
	if (task->start_boottime < settings.started_boottime_ns || faults_of(task) == 0 || is_kernel_thread(task) ||
	    !wanted_task(task))
		return 0;
	return bpf_task_storage_get(&fault_progresses, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

SEC("tp_btf/sched_process_exit")
int fault_exit(void *arguments)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fault_progress *progress = bpf_task_storage_get(&fault_progresses, task, 0, 0);
	struct scratch *scratch;

	if (!progress && !(progress = untraced_faults(task)))
		return 0;
	scratch = enter_event_area();
	if (!scratch) {
		count(COUNTER_LOST);
		return 0;
	}
	sample_rest(scratch, task, progress, bpf_ktime_get_ns());
	leave_event_area(scratch);
	return 0;
}

/* Asked for when a recording begins or ends. */
SEC("iter/task")
int fault_visit(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct fault_progress *progress;
	struct scratch *scratch = scratch_of(iterator_area());
	struct visit *visit = next_visit();

	if (!task || !scratch || !visit)
		return 0;
	progress = bpf_task_storage_get(&fault_progresses, task, 0, 0);
	if (!progress && !(progress = untraced_faults(task)))
		return 0;
	/* Of a thread that was there before us, in its first fault that we see. */
	if (progress->interval == 0 && task->start_boottime < settings.started_boottime_ns)
		return 0;
	if (is_postponed(context))
		return 0;
	sample_rest(scratch, task, progress, visit->time_ns);
	/* A recording that begins is short for a thread with few faults, as a new thread's life is. */
	progress->interval = 1;
	progress->due = 1;
	return 0;
}

#endif
