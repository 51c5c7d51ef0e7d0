/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * The clock of waits: that of the CPU's run queue, which the scheduler has set when a switch began. To ask for
 * CLOCK_MONOTONIC is a third of what a switch would cost. Samples, whose times are on that clock, are few, and
 * what it is ahead of the other is noted with each.
 */
#ifndef CANDELA_WAIT_CLOCK_H
#define CANDELA_WAIT_CLOCK_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* CLOCK_MONOTONIC less the clock of waits, nanoseconds; 0 before the first look. */
__u64 wait_clock_offset = 0;

/* The time of a switch; `previous` is the task that leaves. */
static __always_inline __u64 wait_clock(const struct task_struct *previous)
{
	if (!bpf_core_field_exists(struct sched_entity, cfs_rq))
		return bpf_ktime_get_ns();
	return previous->se.cfs_rq->rq->clock;
}

/* Notes how far the clocks are apart; CLOCK_MONOTONIC. */
static __always_inline __u64 compare_clocks(__u64 wait_now)
{
	__u64 now = bpf_ktime_get_ns();

	*(volatile __u64 *)&wait_clock_offset = now - wait_now;
	return now;
}

/* A time of CLOCK_MONOTONIC on the clock of waits. */
static __always_inline __u64 on_wait_clock(__u64 time_ns)
{
	__u64 offset = *(volatile __u64 *)&wait_clock_offset;
	__s64 time;

	/* No switch has been seen yet: the clock of this CPU is late by a tick at most. */
	if (offset == 0)
		offset = bpf_ktime_get_ns() - wait_clock(bpf_get_current_task_btf());
	/* The clock of waits may have begun later: as early as it knows, and not 0, which is no time. */
	time = time_ns - offset;
	return time > 0 ? time : 1;
}

#endif
