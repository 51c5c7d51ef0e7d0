/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * What Go programs label their goroutines with (runtime/pprof.Do): g.labels points to a list of pairs of
 * strings, which never changes. Until Go 1.23 it was a hash map, which is not read.
 */
#ifndef CANDELA_THREAD_LABELS_H
#define CANDELA_THREAD_LABELS_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "maps.h"
#include "user_memory.h"

enum {
	/* g.m, on all versions. */
	GOROUTINE_THREAD_OFFSET = 48,
};

/* A string and a slice of Go; of a slice the capacity follows. */
struct go_text {
	__u64 address;
	__u64 count;
};

struct go_label {
	struct go_text key;
	struct go_text value;
};

/* How many bytes of `text` are at `to` now, at most `most`; `is_cut` where there are more. */
static __always_inline __u8 copy_text(char *to, __u64 most, const struct go_text *text, bool *is_cut,
				      struct task_struct *other)
{
	__u64 bytes = text->count;

	barrier_var(bytes);
	if (bytes > most) {
		*is_cut = true;
		bytes = most;
	}
	if (bytes == 0 || read_user(to, bytes, text->address, other))
		return 0;
	return bytes;
}

/* Reads the labels of the goroutine that a thread works on; `goroutine` may be its scheduler's. */
static __always_inline void read_goroutine_labels(struct scratch *scratch, const struct thread_variable *variable,
						  __u64 goroutine, struct task_struct *other)
{
	__u64 thread = 0, current = 0, labels = 0;
	struct go_text list;
	bool is_cut = false;

	if (read_user(&thread, sizeof(thread), goroutine + GOROUTINE_THREAD_OFFSET, other) || thread == 0 ||
	    read_user(&current, sizeof(current), thread + variable->current_offset, other) || current == 0 ||
	    read_user(&labels, sizeof(labels), current + variable->labels_offset, other) || labels == 0 ||
	    read_user(&list, sizeof(list), labels, other))
		return;
	for (__u32 i = 0; i < MAX_LABELS; i++) {
		struct sample_label *label = &scratch->labels[i];
		struct go_label found;

		if (i >= list.count)
			break;
		label->key_bytes = 0;
		scratch->header.label_count = i + 1;
		if (read_user(&found, sizeof(found), list.address + i * sizeof(found), other))
			continue;
		label->value_bytes = copy_text(label->value, sizeof(label->value), &found.value, &is_cut, other);
		label->key_bytes = copy_text(label->key, sizeof(label->key), &found.key, &is_cut, other);
	}
	if (is_cut || list.count > MAX_LABELS)
		count(COUNTER_LABELS_CUT);
}

#endif
