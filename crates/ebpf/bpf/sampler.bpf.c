/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/* The samplers: of what runs, by one perf event per CPU, of what waits (off_cpu.h), of page faults
 * (faults.h), of memory growth (growth.h), of locks of the kernel (kernel_locks.h), of block devices (block_io.h),
 * of allocations (allocs.h), of events that somebody names (explicit.h). */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "record.h"

#include "maps.h"
#include "user_stack.h"
#include "threads.h"

/* === the sample === */

static __always_inline __u16 kernel_stack(struct bpf_perf_event_data *event, struct scratch *scratch)
{
	long bytes = bpf_get_stack(event, scratch->payload, MAX_KERNEL_FRAMES * 8, 0);

	if (bytes <= 0 || bytes > MAX_KERNEL_FRAMES * 8) {
		count(COUNTER_KERNEL_STACK_ERROR);
		return 0;
	}
	return (__u64)bytes / 8;
}

/*
 * Whether this tick of the clock is a sample. Ticks are left out rather than the event slowed down: a new period
 * starts the clock anew, and the time since its last tick would be in no sample.
 */
static __always_inline bool is_sample(__u64 ticks_per_sample)
{
	__u32 counter = COUNTER_TICKS;
	__u64 *ticks = bpf_map_lookup_elem(&counters, &counter);

	/* Not atomic: nothing else counts them, and the perf event cannot nest. */
	return ticks && ++*ticks % ticks_per_sample == 0;
}

SEC("perf_event")
int sample_cpu(struct bpf_perf_event_data *event)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 pid = pid_tgid >> 32;
	__u32 cpu = bpf_get_smp_processor_id();
	__u64 ticks_per_sample = pace.ticks_per_sample;
	struct task_struct *task;
	struct scratch *scratch;
	struct sample_header *header;
	bool in_kernel = (event->regs.cs & 3) == 0;
	__u32 payload_bytes;

	if (pid == 0 || !wanted(pid) || !is_sample(ticks_per_sample))
		return 0;
	scratch = scratch_of(cpu);
	if (!scratch) {
		count(COUNTER_LOST);
		return 0;
	}
	task = bpf_get_current_task_btf();
	header = &scratch->header;

	header->kind = RECORD_SAMPLE;
	header->flags = in_kernel ? SAMPLE_IN_KERNEL : 0;
	header->event = 0;
	header->label_count = 0;
	header->pid = pid;
	header->tid = (__u32)pid_tgid;
	header->cpu = cpu;
	header->user_frames = 0;
	header->stack_bytes = 0;
	header->count = 1;
	header->value = settings.period_ns * ticks_per_sample;
	header->run_queue_ns = 0;
	header->lock_address = 0;
	header->lock_holder[0] = 0;
	header->waker[0] = 0;
	header->woken_ns = 0;
	forget_trace_context(header);
	header->time_ns = bpf_ktime_get_ns();
	header->cgroup_id = bpf_get_current_cgroup_id();
	header->process_start_ns = task->group_leader->start_boottime;
	bpf_get_current_comm(header->comm, sizeof(header->comm));
	header->kernel_frames = in_kernel ? kernel_stack(event, scratch) : 0;
	payload_bytes = header->kernel_frames * 8;

	if (is_kernel_thread(task)) {
		header->result = WALK_KERNEL_ONLY;
	} else {
		struct pt_regs *registers = &scratch->task_registers;

		if (in_kernel) {
			if (read_task_registers(scratch, task)) {
				count(COUNTER_LOST);
				return 0;
			}
		} else {
			registers->r15 = event->regs.r15;
			registers->r14 = event->regs.r14;
			registers->r13 = event->regs.r13;
			registers->r12 = event->regs.r12;
			registers->bp = event->regs.bp;
			registers->bx = event->regs.bx;
			registers->r11 = event->regs.r11;
			registers->r10 = event->regs.r10;
			registers->r9 = event->regs.r9;
			registers->r8 = event->regs.r8;
			registers->ax = event->regs.ax;
			registers->cx = event->regs.cx;
			registers->dx = event->regs.dx;
			registers->si = event->regs.si;
			registers->di = event->regs.di;
			registers->ip = event->regs.ip;
			registers->cs = event->regs.cs;
			registers->sp = event->regs.sp;
		}
		payload_bytes = append_user_stack(scratch, cpu, payload_bytes);
	}
	finish_sample(scratch, payload_bytes);
	return 0;
}

/* === process life === */

static __always_inline void emit_life(__u32 kind, __u32 pid, __u32 parent)
{
	struct life_record record = {
		.kind = kind,
		.pid = pid,
		.parent = parent,
		.time_ns = bpf_ktime_get_ns(),
	};

	if (bpf_ringbuf_output(&life, &record, sizeof(record), BPF_RB_FORCE_WAKEUP))
		count(COUNTER_LIFE_RING_FULL);
}

/* Whether samples of a fork are wanted, because its parent's are. */
static __always_inline bool follow_fork(__u32 parent, __u32 child)
{
	__u8 present = 1;

	if (!settings.filter_pids)
		return true;
	if (!settings.follow_forks || !bpf_map_lookup_elem(&target_pids, &parent))
		return false;
	if (bpf_map_update_elem(&target_pids, &child, &present, BPF_ANY))
		count(COUNTER_TARGETS_FULL);
	return true;
}

/*
 * A child has its parent's memory, with vfork until it execs, else as it was then: its first samples, for which user
 * space would be too late, are walked as its parent's are. User space hears of the fork and counts who shares a run
 * of regions; until it has, the run is used for nothing else (src/arena.rs). False where nothing is known.
 */
static __always_inline bool inherit_mappings(__u32 parent, __u32 child)
{
	struct process *of_parent = bpf_map_lookup_elem(&processes, &parent);
	struct process inherited;

	if (!of_parent)
		return false;
	inherited = *of_parent;
	return bpf_map_update_elem(&processes, &child, &inherited, BPF_ANY) == 0;
}

SEC("tp_btf/sched_process_fork")
int process_fork(__u64 *arguments)
{
	struct task_struct *parent = (struct task_struct *)arguments[0];
	struct task_struct *child = (struct task_struct *)arguments[1];
	__u32 parent_pid = parent->tgid;
	__u32 child_pid = child->tgid;
	bool is_followed;

	/* A new thread, not a new process. */
	if (child->pid != child->tgid)
		return 0;
	is_followed = follow_fork(parent_pid, child_pid);
	/* A process id used again: what lies under it is of a process whose end is still on its way. */
	if (!is_followed || !inherit_mappings(parent_pid, child_pid))
		bpf_map_delete_elem(&processes, &child_pid);
	if (is_followed)
		emit_life(RECORD_FORK, child_pid, parent_pid);
	return 0;
}

/* What a program has mapped is gone; what the next one maps, user space hears of by the side band. */
SEC("tp_btf/sched_process_exec")
int process_exec(__u64 *arguments)
{
	struct task_struct *task = (struct task_struct *)arguments[0];
	__u32 pid = task->tgid;

	bpf_map_delete_elem(&processes, &pid);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int process_exit(__u64 *arguments)
{
	struct task_struct *task = (struct task_struct *)arguments[0];
	__u32 pid = task->tgid;

	/* Decremented before the tracepoint: the last thread sees zero. */
	if (task->signal->live.counter != 0)
		return 0;
	if (settings.filter_pids && !bpf_map_lookup_elem(&target_pids, &pid))
		return 0;
	/* Its entries stay until user space has seen this: since 6.16 the memory of a process is torn
	 * down after the tracepoint, and that time is its own. */
	emit_life(RECORD_EXIT, pid, 0);
	return 0;
}

#include "off_cpu.h"
#include "off_cpu_visit.h"
#include "wakers.h"
#include "faults.h"
#include "growth.h"
#include "kernel_locks.h"
#include "block_io.h"
#include "allocs.h"
#include "explicit.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
