/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * The trace and the span that a thread works on, where its program tells: the OpenTelemetry thread context
 * (OTEP 4947), a thread-local pointer `otel_thread_ctx_v1` to a record; Elastic's, the same with another
 * record; custom-labels', to a list of labels; Go's, among the labels of a goroutine. User space finds out how to get from the thread pointer to
 * the pointer, and says so in `processes`: without that nothing is read.
 *
 * Writers fence against the compiler only, so a thread is read while it is interrupted, or blocked.
 */
#ifndef CANDELA_TRACE_CONTEXT_H
#define CANDELA_TRACE_CONTEXT_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "maps.h"
#include "thread_labels.h"
#include "user_memory.h"

enum {
	/* tcbhead_t and musl's struct pthread: behind the pointer to itself. */
	VECTOR_BEHIND_THREAD_POINTER = 8,
	/* dtv_t: a pointer and what to free. The number of entries lies before the first one. */
	GLIBC_ENTRY_BYTES = 16,
	MUSL_ENTRY_BYTES = 8,
	CONTEXT_IS_VALID = 1,
};

/* What glibc's vector holds for a block that the thread has not used yet. */
#define BLOCK_NOT_ALLOCATED (~0ULL)

/* As OTEP 4947 lays it out; attributes follow. */
struct thread_context_record {
	__u8 trace_id[16];
	__u8 span_id[8];
	__u8 valid;
	__u8 trace_flags;
	__u16 attributes_bytes;
};

/* Elastic's, version 1. */
struct elastic_record {
	__u16 minor_version;
	__u8 valid;
	__u8 trace_present;
	__u8 trace_flags;
	__u8 trace_id[16];
	__u8 span_id[8];
};

/* No sample tells of a span before its thread was asked. */
static __always_inline void forget_trace_context(struct sample_header *header)
{
	__builtin_memset(header->trace_id, 0, sizeof(header->trace_id));
	__builtin_memset(header->span_id, 0, sizeof(header->span_id));
}

/* The address of a thread-local variable; 0 where the thread has none yet, or it cannot be told. */
static __always_inline __u64 thread_variable_address(const struct thread_variable *variable, __u64 thread_pointer,
						  struct task_struct *other)
{
	bool is_glibc = variable->kind == THREAD_VARIABLE_IN_GLIBC_MODULE;
	__u64 vector, length, block;

	if (variable->kind == THREAD_VARIABLE_FIXED)
		return thread_pointer + variable->offset;
	if (read_user(&vector, sizeof(vector), thread_pointer + VECTOR_BEHIND_THREAD_POINTER, other))
		return 0;
	if (read_user(&length, sizeof(length), is_glibc ? vector - GLIBC_ENTRY_BYTES : vector, other))
		return 0;
	/* A thread that has not used a module since it was loaded has a vector without it. */
	if (variable->module > length)
		return 0;
	vector += (__u64)variable->module * (is_glibc ? GLIBC_ENTRY_BYTES : MUSL_ENTRY_BYTES);
	if (read_user(&block, sizeof(block), vector, other) || block == 0 || block == BLOCK_NOT_ALLOCATED)
		return 0;
	return block + variable->offset;
}

/* A word of user memory; 0 where it cannot be read, which is counted. */
static __always_inline __u64 pointer_at(__u64 address, struct task_struct *other)
{
	__u64 pointer = 0;

	if (read_user(&pointer, sizeof(pointer), address, other))
		count(COUNTER_TRACE_CONTEXT_UNREAD);
	return pointer;
}

/* False where the record cannot be read or is being written. */
static __always_inline bool read_opentelemetry(struct scratch *scratch, __u64 address, struct task_struct *other)
{
	struct sample_header *header = &scratch->header;
	struct thread_context_record record;

	if (read_user(&record, sizeof(record), address, other)) {
		count(COUNTER_TRACE_CONTEXT_UNREAD);
		return false;
	}
	if (record.valid != CONTEXT_IS_VALID)
		return false;
	__builtin_memcpy(header->trace_id, record.trace_id, sizeof(header->trace_id));
	__builtin_memcpy(header->span_id, record.span_id, sizeof(header->span_id));
	if (record.attributes_bytes)
		read_attributes(scratch, address + sizeof(record), record.attributes_bytes, other);
	return true;
}

static __always_inline bool read_elastic(struct sample_header *header, __u64 address, struct task_struct *other)
{
	struct elastic_record record;

	if (read_user(&record, sizeof(record), address, other)) {
		count(COUNTER_TRACE_CONTEXT_UNREAD);
		return false;
	}
	if (record.valid == 0 || record.trace_present != 1)
		return false;
	__builtin_memcpy(header->trace_id, record.trace_id, sizeof(header->trace_id));
	__builtin_memcpy(header->span_id, record.span_id, sizeof(header->span_id));
	return true;
}

/* Tells the span of a thread in the header, which says "none" so far; `other` as in read_user(). */
static __always_inline void read_trace_context(struct scratch *scratch, const struct thread_variable *variable,
					       struct task_struct *task, struct task_struct *other)
{
	struct sample_header *header = &scratch->header;
	__u64 pointer_address = thread_variable_address(variable, task->thread.fsbase, other);
	__u64 pointer;
	bool is_goroutine = variable->format == CONTEXT_GOROUTINE || variable->format == CONTEXT_GOROUTINE_MAP;
	bool is_read = true;

	if (pointer_address == 0)
		return;
	pointer = pointer_at(pointer_address, other);
	if (pointer == 0)
		return;
	scratch->is_label_cut = 0;
	if (variable->format == CONTEXT_ELASTIC)
		is_read = read_elastic(header, pointer, other);
	else if (variable->format == CONTEXT_OPENTELEMETRY)
		is_read = read_opentelemetry(scratch, pointer, other);
	else
		read_labels(scratch, variable, pointer, other);
	if (scratch->is_label_cut)
		count(COUNTER_LABELS_CUT);
	/* Another thread may have woken up in the meantime; labels of goroutines do not change. */
	if (is_read && other && !is_goroutine && pointer_at(pointer_address, other) != pointer) {
		forget_trace_context(header);
		header->label_count = 0;
	}
}

/*
 * The same for the current thread. A function of its own, because the verifier would follow what comes after
 * it once for each way out of it.
 */
static __attribute__((noinline)) int read_own_trace_context(struct scratch *scratch,
							    const struct thread_variable *variable)
{
	read_trace_context(scratch, variable, bpf_get_current_task_btf(), 0);
	return 0;
}

#endif
