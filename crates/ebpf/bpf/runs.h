/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * How often programs run, where the kernel does not let us measure how long that takes. Only those that run often:
 * what happens to processes is seldom.
 */
#ifndef CANDELA_RUNS_H
#define CANDELA_RUNS_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "maps.h"

/* src/program_runs.rs has their names in the same order. */
enum counted_program {
	RUNS_OFF_CPU_SWITCH = 0,
	RUNS_OFF_CPU_CALL_ENDS = 1,
	RUNS_OFF_CPU_WAKE = 2,
	RUNS_FAULT_IN_USER = 3,
	RUNS_FAULT_IN_KERNEL = 4,
	RUNS_GROWTH_BEGIN = 5,
	RUNS_GROWTH_END = 6,
	RUNS_KERNEL_LOCK_BEGIN = 7,
	RUNS_KERNEL_LOCK_END = 8,
	RUNS_BLOCK_IO_BEGIN = 9,
	RUNS_BLOCK_IO_END = 10,
	COUNTED_PROGRAMS = 11,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTED_PROGRAMS);
	__type(key, __u32);
	__type(value, __u64);
} program_runs SEC(".maps");

static __always_inline void count_run(__u32 program)
{
	__u64 *runs;

	if (!settings.counts_runs)
		return;
	runs = bpf_map_lookup_elem(&program_runs, &program);
	/* Not atomic: the kernel does not run a program where it runs already. */
	if (runs)
		++*runs;
}

#endif
