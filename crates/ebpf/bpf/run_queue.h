/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * How long threads wait for a CPU, by the scheduler's own account: exact, and nothing runs at a wake-up, of
 * which there are as many as switches.
 */
#ifndef CANDELA_RUN_QUEUE_H
#define CANDELA_RUN_QUEUE_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>

/*
 * How long a thread that does not run has been runnable without running, nanoseconds since its start. The wait
 * that goes on is not in the account yet. When its end is traced its run queue's clock has just been set; before
 * that the clock is late by a timer tick at most, which the next look makes good.
 */
static __always_inline __u64 run_queue_time(const struct task_struct *task)
{
	__u64 since = task->sched_info.last_queued, total = task->sched_info.run_delay;
	__u64 clock = task->se.cfs_rq->rq->clock;

	if (since != 0 && clock > since)
		total += clock - since;
	return total;
}

#endif
