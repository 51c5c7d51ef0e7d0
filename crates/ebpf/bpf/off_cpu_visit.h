/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * Threads that are off a CPU and do not come back while we look: when a recording or a window begins or ends, an
 * iterator looks at all of them.
 */
#ifndef CANDELA_OFF_CPU_VISIT_H
#define CANDELA_OFF_CPU_VISIT_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "off_cpu.h"

enum {
	/* Off-CPU times are counted from now on. */
	VISIT_START = 1,
	/* What is off CPU gives samples of the time so far. */
	VISIT_SAMPLE = 2,
	/* The same, and what is on its way back, too. */
	VISIT_END = 3,
};

/* From now on its time off CPU counts, what was before does not. */
static __always_inline void visit_start(struct task_struct *task, __u64 start_ns)
{
	__u32 tid = task->pid;
	struct deferred_sample *deferred = bpf_map_lookup_elem(&deferred_samples, &tid);
	struct off_cpu_time *time;
	__u64 before, start;

	if (deferred) {
		__sync_lock_test_and_set(&deferred->owed_ns, 0);
		__sync_lock_test_and_set(&deferred->owed_run_queue_ns, 0);
		__sync_lock_test_and_set(&deferred->owed_switches, 0);
	}
	time = bpf_task_storage_get(&off_cpu_times, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!time)
		count(COUNTER_LOST);
	if (!time || task->on_cpu)
		return;
	before = time->since_ns;
	if (before == 0) {
		note_departure(task, time, task->__state == TASK_RUNNING);
		if (settings.locks && !time->was_preempted && !is_kernel_thread(task))
			note_lock(task, &time->lock, task);
	}
	if (settings.run_queues)
		time->queued_ns = run_queue_time(task);
	start = on_wait_clock(start_ns);
	if (before >= start || __sync_val_compare_and_swap(&time->since_ns, before, start) != before)
		return;
	/* Since when it waits nobody knows where it was not seen to leave: long enough. */
	time->earlier_ns += before == 0 ? settings.least_wait_ns : start - before;
	/* It may have been switched in between, when there was nothing to take. */
	if (task->on_cpu)
		__sync_val_compare_and_swap(&time->since_ns, start, 0);
}

/* The user stack of a thread that does not run, for user space to walk; the new end of the payload. */
static __always_inline __u32 append_blocked_user_stack(struct scratch *scratch, struct task_struct *task, __u32 end)
{
	struct sample_header *header = &scratch->header;
	struct process *process;
	__u32 pid = header->pid;

	if (task->flags & PF_EXITING || read_task_registers(scratch, task) || is_compat(scratch))
		return end;
	keep_registers(scratch, &scratch->task_registers);
	header->result = WALK_NO_TABLE;
	header->flags |= SAMPLE_NOT_WALKED;
	process = bpf_map_lookup_elem(&processes, &pid);
	if (process) {
		header->flags |= SAMPLE_PROCESS_KNOWN;
		if (process->context.kind != THREAD_VARIABLE_NONE)
			read_trace_context(scratch, &process->context, task, task);
	}
	return append_context(scratch, end, task);
}

static __always_inline void visit_sample(struct task_struct *task, __u64 now, bool is_end)
{
	__u32 tid = task->pid, payload_bytes;
	struct off_cpu_time *time = bpf_task_storage_get(&off_cpu_times, task, 0, 0);
	struct scratch *scratch = scratch_of(iterator_area());
	struct deferred_sample *deferred;
	struct weight weight = {};
	struct wait wait;
	__u64 since, until;

	if (!time || !scratch)
		return;
	deferred = bpf_map_lookup_elem(&deferred_samples, &tid);
	since = time->since_ns;
	/* It is on its way back to user space, and nobody will be there to hear of it. */
	if (since == 0 && is_end && deferred) {
		if (deferred->header.time_ns > now)
			deferred->header.time_ns = now;
		give_up_deferred(deferred, scratch);
		return;
	}
	until = on_wait_clock(now);
	if (since == 0 || since >= until)
		return;
	wait.away_ns = time_away(task, time, since, until);
	/* It may yet be long: it counts when it ends, or at the next look. */
	if (!is_end && is_short(time, &wait))
		return;
	if (__sync_val_compare_and_swap(&time->since_ns, since, until) != since)
		return;
	wait.run_queue_ns = time_queued(task, time, wait.away_ns);
	time->ran_ns = task->se.sum_exec_runtime;
	time->queued_ns += wait.run_queue_ns;
	weigh(time, &wait, &weight);
	time->earlier_ns += wait.away_ns;
	if (deferred && deferred->header.lock_address != time->lock.address) {
		give_up_deferred(deferred, scratch);
	} else if (deferred) {
		weight.value_ns += __sync_lock_test_and_set(&deferred->owed_ns, 0);
		weight.run_queue_ns += __sync_lock_test_and_set(&deferred->owed_run_queue_ns, 0);
		weight.switches += __sync_lock_test_and_set(&deferred->owed_switches, 0);
	}
	if (weight.value_ns == 0)
		return;
	fill_off_cpu_header(&scratch->header, task, time, now);
	scratch->header.kernel_frames = blocked_kernel_stack(task, scratch->payload);
	payload_bytes = scratch->header.kernel_frames * 8;
	name_holder(&scratch->header, time->lock.holder, false);
	if (!is_kernel_thread(task))
		payload_bytes = append_blocked_user_stack(scratch, task, payload_bytes);
	finish_off_cpu_sample(scratch, payload_bytes, &weight);
}

SEC("iter.s/task")
int off_cpu_visit(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct visit *visit = next_visit();

	if (!task || !visit || task->pid == 0 || task->exit_state != 0 || !wanted_task(task))
		return 0;
	if (visit->mode == VISIT_START) {
		visit_start(task, visit->time_ns);
		return 0;
	}
	if (!is_postponed(context))
		visit_sample(task, visit->time_ns, visit->mode == VISIT_END);
	return 0;
}

#endif
