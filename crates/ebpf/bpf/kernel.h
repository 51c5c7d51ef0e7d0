/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * The few kernel types the programs read, written by hand. Field order is
 * irrelevant where preserve_access_index stands: the loader relocates each
 * access to the running kernel's layout by its BTF, so an unneeded field is
 * simply left out. No kernel header is needed to build.
 */
#ifndef CANDELA_KERNEL_H
#define CANDELA_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;

enum { false, true };
typedef _Bool bool;

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_CGROUP_ARRAY = 8,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1U << 0,
	BPF_F_MMAPABLE = 1U << 10,
	BPF_F_INNER_MAP = 1U << 12,
};

enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
};

enum {
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1U << 0,
};

/* task_struct.__state */
enum {
	TASK_RUNNING = 0,
	TASK_DEAD = 0x80,
};

/* task_struct.flags */
enum {
	PF_EXITING = 0x4,
	PF_IO_WORKER = 0x10,
	PF_USER_WORKER = 0x4000,
	PF_KTHREAD = 0x200000,
};

enum {
	/* __USER32_CS: what cs holds in a 32-bit program. */
	COMPAT_CODE_SEGMENT = 0x23,
};

/* x86-64: an ABI, therefore not relocated. */
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx;
	unsigned long r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
};

struct bpf_perf_event_data {
	struct pt_regs regs;
	__u64 sample_period;
	__u64 addr;
};

#define RELOCATED __attribute__((preserve_access_index))

struct signal_struct {
	struct {
		int counter;
	} live;
} RELOCATED;

struct kernfs_node {
	__u64 id;
} RELOCATED;

struct cgroup {
	struct kernfs_node *kn;
} RELOCATED;

struct css_set {
	struct cgroup *dfl_cgrp;
} RELOCATED;

/* A CPU's run queue. */
struct rq {
	__u64 clock;
} RELOCATED;

/* There only with CONFIG_FAIR_GROUP_SCHED. */
struct cfs_rq {
	struct rq *rq;
} RELOCATED;

struct sched_entity {
	struct cfs_rq *cfs_rq;
	/* Nanoseconds on a CPU since the task began; up to date when the task is switched out. */
	__u64 sum_exec_runtime;
} RELOCATED;

/* There only where the kernel keeps account of it (CONFIG_SCHED_INFO); in nanoseconds of the run queue's clock. */
struct sched_info {
	/* Waited for a CPU though runnable, in all. */
	unsigned long long run_delay;
	/* Since when it waits now; 0 when it does not. */
	unsigned long long last_queued;
} RELOCATED;

struct mm_struct {
	/* Pages of private writable memory but for stacks, touched or not. */
	unsigned long data_vm;
} RELOCATED;

struct thread_struct {
	/* Where the fs segment begins: the thread pointer. */
	unsigned long fsbase;
} RELOCATED;

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	/* The lowest address of the kernel's stack of the task. */
	void *stack;
	/* A byte on Linux 7.3: unsigned, or the loader would not fit the access to its size. */
	unsigned int on_cpu;
	int exit_state;
	/* What the scheduler goes by now: 0 to 99 is real time, 120 what is not nice nor the contrary. */
	int prio;
	unsigned in_execve : 1;
	int pid;
	int tgid;
	char comm[16];
	struct css_set *cgroups;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	struct signal_struct *signal;
	struct sched_entity se;
	struct sched_info sched_info;
	__u64 start_boottime;
	/* Page faults so far. */
	unsigned long min_flt;
	unsigned long maj_flt;
	struct thread_struct thread;
} RELOCATED;

/* Only asked whether its links have cookies. */
struct bpf_raw_tp_link {
	__u64 cookie;
} RELOCATED;

/* Never looked into, but a kernel function's type must be complete to be found. */
struct bpf_map {
	__u32 id;
} RELOCATED;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} RELOCATED;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} RELOCATED;

/* Known to the kernel by its name and size. */
struct bpf_task_work {
	__u64 opaque;
} __attribute__((aligned(8)));

#endif
