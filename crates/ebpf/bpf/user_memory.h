/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/* Reading the memory of processes. */
#ifndef CANDELA_USER_MEMORY_H
#define CANDELA_USER_MEMORY_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>

/*
 * `value` where it is not above `limit`, else `limit`, in one register. A comparison of C may be of a copy, and the
 * verifiers of older kernels do not know then what the original can be.
 */
static __always_inline __u64 at_most(__u64 value, __u64 limit)
{
	asm volatile("if %[value] <= %[limit] goto +1\n"
		     "%[value] = %[limit]"
		     : [value] "+r"(value)
		     : [limit] "r"(limit));
	return value;
}

/*
 * Reads user memory of the current task, or of another where one is given: only a sleepable program may.
 * Which of both is known where this is inlined, so that no program holds a call that it may not make.
 */
static __always_inline long read_user(void *to, __u32 bytes, __u64 address, struct task_struct *other)
{
	if (other)
		return bpf_copy_from_user_task(to, bytes, (void *)address, other, 0);
	return bpf_probe_read_user(to, bytes, (void *)address);
}

#endif
