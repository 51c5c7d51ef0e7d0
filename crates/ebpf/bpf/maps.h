/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/* Every map, with who writes it. Sizes marked "set by the loader" are 1 here. */
#ifndef CANDELA_MAPS_H
#define CANDELA_MAPS_H

#include "kernel.h"
#include "record.h"
#include "tables.h"

/* Work area. The perf event cannot nest on one CPU, so a plain array indexed by CPU is race free;
 * a per-CPU map could not hold 64 KiB values. Off-CPU samples and page faults have areas of their own
 * behind those, because the perf event interrupts the former and causes the latter: see off_cpu.h, event_area.h. */
struct scratch {
	struct sample_header header;
	__u8 payload[MAX_FRAMES * 8 + REGISTER_COUNT * 8 + (MAX_STACK_PAGES + 1) * PAGE_BYTES];
	struct walk walk;
	__u64 entry_registers[REGISTER_COUNT];
	struct pt_regs task_registers;
	/* Until they are appended: what the thread's work is labelled with. */
	struct sample_label labels[MAX_LABELS];
	/* Whether there were more of them, or longer ones. */
	__u64 is_label_cut;
	/* Its index, in those of event_area.h. */
	__u64 area;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, __u32);
	__type(value, struct scratch);
} scratch_areas SEC(".maps");

enum thread_variable_kind {
	THREAD_VARIABLE_NONE = 0,
	/* At a fixed distance from the thread pointer. */
	THREAD_VARIABLE_FIXED = 1,
	/* In the block that a thread has for a module, found by the vector of blocks. */
	THREAD_VARIABLE_IN_GLIBC_MODULE = 2,
	THREAD_VARIABLE_IN_MUSL_MODULE = 3,
};

enum context_format {
	/* The variable points to a record of OTEP 4947. */
	CONTEXT_OPENTELEMETRY = 0,
	/* Elastic's Universal Profiling integration, version 1. */
	CONTEXT_ELASTIC = 1,
	/* It points to a goroutine (struct g of Go's runtime), whose pprof labels tell. */
	CONTEXT_GOROUTINE = 2,
	/* The same with a hash map of labels, before Go 1.24. */
	CONTEXT_GOROUTINE_MAP = 3,
	/* It points to a set of labels, of polarsignals/custom-labels, version 1. */
	CONTEXT_CUSTOM_LABELS = 4,
};

/* How to get to a variable that each thread of a process has, and what it points to. */
struct thread_variable {
	/* From the thread pointer or from the start of the module's block. */
	__s64 offset;
	__u32 module;
	__u16 kind;
	__u16 format;
	/* With CONTEXT_GOROUTINE and CONTEXT_GOROUTINE_MAP: of m.curg and g.labels. */
	__u32 current_offset;
	__u32 labels_offset;
};

/*
 * A process we can walk: its run of regions. Written by user space, copied to forks in the kernel, deleted at exec in
 * the kernel and at exit by user space.
 */
struct process {
	__u32 first_region;
	__u32 region_count;
	/* The pointer to the thread context. Here, because each sample looks up the rest anyway. */
	struct thread_variable context;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, __u32);
	__type(value, struct process);
} processes SEC(".maps");

/* All regions of all processes. User space allocates runs in it and writes it by mmap. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, __u32);
	__type(value, struct region);
} regions SEC(".maps");

/* The rule dictionary shared by all tables. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 32768);
	__type(key, __u32);
	__type(value, struct unwind_rule);
} rules SEC(".maps");

/* Unwind tables, exactly sized. */
struct table_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct table_element);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, __u32);
	__array(values, struct table_map);
} tables SEC(".maps");

/* When a walk last used a table (CLOCK_MONOTONIC ns, about 1 s coarse): eviction goes by it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* as tables; set by the loader */
	__type(key, __u32);
	__type(value, __u64);
} table_last_used SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, PAGE_BYTES); /* set by the loader */
} samples SEC(".maps");

/* Fork and exit stay apart from samples: they are few, and losing one costs more. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, PAGE_BYTES); /* set by the loader */
} life SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTER_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

/* A token bucket for the stack copies of a process, in nanoseconds of credit. */
struct copy_budget {
	__u64 updated_ns;
	__u64 credit_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct copy_budget);
} copy_budgets SEC(".maps");

/* With filter_pids: the processes to sample. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u8);
} target_pids SEC(".maps");

/* With filter_cgroup: slot 0 is the cgroup whose subtree is sampled. */
struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} target_cgroup SEC(".maps");

enum {
	WAKER_NAMES = 1,
	WAKER_STACKS = 2,
};

/* Settings, fixed before the programs are loaded; src/loader.rs writes the same layout. */
struct settings {
	__u32 filter_pids;
	__u32 filter_cgroup;
	__u32 follow_forks;
	__u32 excluded_pid;
	__u32 stack_pages;
	__u32 possible_cpus;
	/* Each wait is a sample. */
	__u32 all_waits;
	/* Which locks threads wait for is told, and such waits are samples. */
	__u32 locks;
	/* How long threads wait for a CPU is told, and such waits are samples. */
	__u32 run_queues;
	/* Who ends waits is told: WAKER_NAMES, or WAKER_STACKS too. */
	__u32 wakers;
	/* What one stack copy costs; 0: none are allowed. */
	__u64 copy_cost_ns;
	__u64 copy_credit_limit_ns;
	/* The time between two ticks of a busy CPU. */
	__u64 period_ns;
	/* With filter_cgroup: its id. */
	__u64 target_cgroup_id;
	/* One page fault of so many gives a stack. */
	__u64 fault_interval;
	/* The wait for a kernel lock that one sample stands for at least. */
	__u64 kernel_lock_mean_ns;
	/* The growth that one sample stands for at least: of the first, and of a thread that grows all the time. */
	__u64 growth_mean_bytes;
	__u64 growth_most_mean_bytes;
	/* One block request of so many is sampled. */
	__u64 request_interval;
	/* When the programs were loaded, CLOCK_BOOTTIME. */
	__u64 started_boottime_ns;
	/* Of the one tracepoint that somebody names, where links of tracepoints have no cookie. */
	__u64 tracepoint_cookie;
	/* Shorter waits are no samples, but counted; 0: there are none that are too short. */
	__u64 least_wait_ns;
	/* Programs count how often they run: the kernel does not measure them. */
	__u64 counts_runs;
};

/* A section of its own, so that the loader need not know where in .rodata it lies. */
const volatile struct settings settings SEC(".rodata.settings") = {};

/* How much is sampled, which user space may change at any time; src/pace.rs has the same layout. */
struct pace {
	/* One tick of a CPU's clock of so many is a sample, worth as many periods; at least 1. */
	__u64 ticks_per_sample;
	/* The blocked time that one off-CPU sample stands for at least. */
	__u64 off_cpu_mean_ns;
	/* One sampled allocation of so many is told, worth as many; at least 1. */
	__u64 allocations_per_sample;
};

volatile struct pace pace SEC(".data.pace") = {};

/* clang up to 19 emits a struct that only an inner map names as a forward declaration. */
const struct table_element keep_table_element_type = {};

static __always_inline void count_many(__u32 counter, __u64 amount)
{
	__u64 *value = bpf_map_lookup_elem(&counters, &counter);
	/* Atomic, because the perf event interrupts the off-CPU programs. */
	if (value)
		__sync_fetch_and_add(value, amount);
}

static __always_inline void count(__u32 counter)
{
	count_many(counter, 1);
}

#endif
