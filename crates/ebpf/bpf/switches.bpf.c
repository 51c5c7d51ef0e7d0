/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * Every switch of every CPU, as the kernel's own tracepoint tells it: who leaves, in which state, and who comes. An
 * object of its own, because a switch is no sample: nobody pays for its map who wants samples, and the other way round.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* What crosses the ring; src/switches.rs decodes it, so a change here is a change there. */
struct switch_record {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 cpu;
	__u32 previous_tid;
	__u32 tid;
	__u32 pid;
	__u16 previous_state;
	__u16 priority;
	__u32 reserved;
	char comm[16];
	char process_comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* set by the loader */
} switches SEC(".maps");

/* Switches that found no room in the ring. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

enum {
	TASK_UNINTERRUPTIBLE = 0x2,
	/* The states that have a letter: R S D T t X Z P. */
	TASK_REPORT = 0x7f,
	TASK_IDLE = 0x402,
	TASK_RTLOCK_WAIT = 0x1000,
	TASK_FROZEN = 0x8000,
	REPORTED_IDLE = 0x80,
	REPORTED_PREEMPTED = 0x100,
};

/* As __trace_sched_switch_state() of the kernel: one bit, the highest of those that have a letter. */
static __always_inline __u16 reported_state(bool is_preempted, __u32 state, __u32 exit_state)
{
	__u32 reported = (state | exit_state) & TASK_REPORT;

	if (is_preempted)
		return REPORTED_PREEMPTED;
	if ((state & TASK_IDLE) == TASK_IDLE)
		return REPORTED_IDLE;
	if (state & (TASK_RTLOCK_WAIT | TASK_FROZEN))
		return TASK_UNINTERRUPTIBLE;
	reported |= reported >> 1;
	reported |= reported >> 2;
	reported |= reported >> 4;
	return (reported + 1) >> 1;
}

SEC("tp_btf/sched_switch")
int record_switch(__u64 *arguments)
{
	bool is_preempted = arguments[0] & 1;
	struct task_struct *previous = (struct task_struct *)arguments[1];
	struct task_struct *next = (struct task_struct *)arguments[2];
	__u32 previous_state = arguments[3];
	struct switch_record *record;
	__u32 slot = 0;
	__u64 *losses;

	record = bpf_ringbuf_reserve(&switches, sizeof(*record), 0);
	if (!record) {
		losses = bpf_map_lookup_elem(&lost, &slot);
		/* Not atomic: a CPU switches once at a time. */
		if (losses)
			++*losses;
		return 0;
	}
	record->time_ns = bpf_ktime_get_ns();
	record->cpu = bpf_get_smp_processor_id();
	record->previous_tid = previous->pid;
	record->tid = next->pid;
	record->pid = next->tgid;
	record->previous_state = reported_state(is_preempted, previous_state, previous->exit_state);
	record->priority = next->prio;
	record->reserved = 0;
	bpf_probe_read_kernel(record->comm, sizeof(record->comm), next->comm);
	bpf_probe_read_kernel(record->process_comm, sizeof(record->process_comm), next->group_leader->comm);
	/* Who reads it looks by time: a wake-up for a switch would be a switch. */
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
