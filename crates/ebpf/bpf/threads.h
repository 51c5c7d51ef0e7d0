/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/* Whose samples are wanted, and what a sample says of its thread. */
#ifndef CANDELA_THREADS_H
#define CANDELA_THREADS_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "maps.h"
#include "trace_context.h"

extern struct cgroup *bpf_cgroup_from_id(__u64 id) __ksym __weak;
extern void bpf_cgroup_release(struct cgroup *cgroup) __ksym __weak;
extern long bpf_task_under_cgroup(struct task_struct *task, struct cgroup *ancestor) __ksym __weak;

/* As kernels have it that lack the functions above; later ones have no such field. */
struct kernfs_node___with_parent {
	__u64 id;
	struct kernfs_node___with_parent *parent;
} RELOCATED;

enum {
	/* No host nests its cgroups deeper. */
	MAX_CGROUP_LEVELS = 32,
};

/* What the next run of an iterator program is for; src/thread_visit.rs writes it. They run one at a time. */
struct visit {
	__u32 mode;
	__u32 reserved;
	__u64 time_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct visit);
} visits SEC(".maps");

static __always_inline struct visit *next_visit(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&visits, &first);
}

/* Behind the areas of the perf event and of off_cpu.h. */
static __always_inline __u32 iterator_area(void)
{
	return 2 * settings.possible_cpus;
}

/* Writes a byte when the ring buffer is too full to go on: drain it and run the iterator again. */
static __always_inline bool is_postponed(struct bpf_iter__task *context)
{
	__u8 postponed = 1;

	if (bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) <= bpf_ringbuf_query(&samples, BPF_RB_RING_SIZE) / 2)
		return false;
	bpf_seq_write(context->meta->seq, &postponed, sizeof(postponed));
	return true;
}

static __always_inline bool is_kernel_thread(const struct task_struct *task)
{
	return task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER);
}

/* Whether the current task's samples are wanted; `pid` is its process. */
static __always_inline bool wanted(__u32 pid)
{
	if (pid == settings.excluded_pid)
		return false;
	if (settings.filter_pids && !bpf_map_lookup_elem(&target_pids, &pid))
		return false;
	if (settings.filter_cgroup && bpf_current_task_under_cgroup(&target_cgroup, 0) != 1)
		return false;
	return true;
}

/* Before Linux 6.5, which has functions for it: the folder of the task's cgroup, or one above, is the target's. */
static __always_inline bool is_below_target(struct task_struct *task)
{
	struct kernfs_node___with_parent *folder = (void *)task->cgroups->dfl_cgrp->kn;

	for (int level = 0; level < MAX_CGROUP_LEVELS && folder; level++) {
		if (BPF_CORE_READ(folder, id) == settings.target_cgroup_id)
			return true;
		folder = BPF_CORE_READ(folder, parent);
	}
	return false;
}

/* As wanted(), which is about the current task's cgroup. */
static __always_inline bool wanted_task(struct task_struct *task)
{
	__u32 pid = task->tgid;
	struct cgroup *cgroup;
	bool is_member;

	if (pid == settings.excluded_pid)
		return false;
	if (settings.filter_pids && !bpf_map_lookup_elem(&target_pids, &pid))
		return false;
	if (!settings.filter_cgroup)
		return true;
	if (!bpf_ksym_exists(bpf_task_under_cgroup))
		return is_below_target(task);
	cgroup = bpf_cgroup_from_id(settings.target_cgroup_id);
	if (!cgroup)
		return false;
	is_member = bpf_task_under_cgroup(task, cgroup);
	bpf_cgroup_release(cgroup);
	return is_member;
}

/* What a sample says of its thread, with no frames yet. */
static __always_inline void fill_header(struct sample_header *header, __u32 kind, struct task_struct *task, __u64 now)
{
	header->kind = kind;
	header->flags = 0;
	header->event = 0;
	header->label_count = 0;
	header->pid = task->tgid;
	header->tid = task->pid;
	header->cpu = bpf_get_smp_processor_id();
	header->kernel_frames = 0;
	header->user_frames = 0;
	header->stack_bytes = 0;
	header->run_queue_ns = 0;
	header->time_ns = now;
	header->lock_address = 0;
	header->lock_holder[0] = 0;
	header->waker[0] = 0;
	header->woken_ns = 0;
	forget_trace_context(header);
	header->cgroup_id = task->cgroups->dfl_cgrp->kn->id;
	header->process_start_ns = task->group_leader->start_boottime;
	bpf_probe_read_kernel(header->comm, sizeof(header->comm), task->comm);
	header->result = is_kernel_thread(task) ? WALK_KERNEL_ONLY : WALK_BAD_READ;
}

#endif
