/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * What programs label their work with. Go's labels of a goroutine (runtime/pprof.Do): g.labels points to a list of
 * pairs of strings, until Go 1.23 to a hash map; neither ever changes. Those of polarsignals/custom-labels (ABI
 * version 1): a list of pairs that the thread itself changes. The attributes of OTEP 4947, whose keys are numbers.
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
	/* bucketCnt of runtime/map.go, and minTopHash: what is less says that the slot is empty. */
	GO_MAP_SLOTS = 8,
	GO_MAP_FIRST_FULL = 5,
	/* Of up to 13 labels; what lies in further groups is cut. */
	GO_MAP_GROUPS = 2,
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

/* hmap of runtime/map.go, without what follows. */
struct go_map {
	__u64 count;
	__u8 flags;
	__u8 log2_groups;
	__u16 overflowing;
	__u32 seed;
	__u64 groups;
};

/* bmap with strings for keys and values. */
struct go_map_group {
	__u8 states[GO_MAP_SLOTS];
	struct go_text keys[GO_MAP_SLOTS];
	struct go_text values[GO_MAP_SLOTS];
	__u64 overflow;
};

/* In front of its value. */
struct thread_attribute {
	__u8 key;
	__u8 value_bytes;
};

/* A string whose length comes first. */
static __always_inline struct go_text turned(struct go_text text)
{
	return (struct go_text){ .address = text.count, .count = text.address };
}

/*
 * How many bytes of `text` are at `to` now, at most `most`. That there are more is noted in the work area: the verifier
 * would follow each value of a variable apart.
 */
static __always_inline __u8 copy_text(struct scratch *scratch, char *to, __u64 most, const struct go_text *text,
				      struct task_struct *other)
{
	__u64 bytes = text->count;

	if (bytes > most)
		scratch->is_label_cut = 1;
	bytes = at_most(bytes, most);
	if (bytes == 0 || read_user(to, bytes, text->address, other))
		return 0;
	return bytes;
}

/* The place of the next label, which has no key yet; 0 when there is none. */
static __always_inline struct sample_label *next_label(struct scratch *scratch)
{
	__u32 count = scratch->header.label_count;
	struct sample_label *label;

	if (count >= MAX_LABELS) {
		scratch->is_label_cut = 1;
		return 0;
	}
	label = &scratch->labels[count];
	label->key_bytes = 0;
	scratch->header.label_count = count + 1;
	return label;
}

/* Reads a list of pairs. With `length_first` their strings are laid out as those of custom-labels. */
static __always_inline void read_pairs(struct scratch *scratch, const struct go_text *list, bool length_first,
				       struct task_struct *other)
{
	for (__u32 i = 0; i <= MAX_LABELS; i++) {
		struct sample_label *label;
		struct go_label found;

		if (i >= list->count || !(label = next_label(scratch)))
			break;
		if (read_user(&found, sizeof(found), list->address + i * sizeof(found), other))
			continue;
		if (length_first) {
			found.key = turned(found.key);
			found.value = turned(found.value);
		}
		label->value_bytes = copy_text(scratch, label->value, sizeof(label->value), &found.value, other);
		label->key_bytes = copy_text(scratch, label->key, sizeof(label->key), &found.key, other);
	}
}

/* Reads a map[string]string as Go has it until 1.23 (runtime/map.go), of as many groups as ten labels can need. */
static __always_inline void read_map(struct scratch *scratch, __u64 map, struct task_struct *other)
{
	struct go_map head;

	if (read_user(&head, sizeof(head), map, other))
		return;
	for (__u32 slot = 0; slot < GO_MAP_GROUPS * GO_MAP_SLOTS; slot++) {
		__u32 group = slot / GO_MAP_SLOTS, place = slot % GO_MAP_SLOTS;
		__u64 address = head.groups + (__u64)group * sizeof(struct go_map_group);
		struct sample_label *label;
		struct go_text key, value;
		__u8 state;

		if (group > 0 && head.log2_groups == 0)
			break;
		if (read_user(&state, sizeof(state), address + place, other) || state < GO_MAP_FIRST_FULL)
			continue;
		if (!(label = next_label(scratch)))
			break;
		address += place * sizeof(key);
		if (read_user(&key, sizeof(key), address + offsetof(struct go_map_group, keys), other) ||
		    read_user(&value, sizeof(value), address + offsetof(struct go_map_group, values), other))
			continue;
		label->value_bytes = copy_text(scratch, label->value, sizeof(label->value), &value, other);
		label->key_bytes = copy_text(scratch, label->key, sizeof(label->key), &key, other);
	}
	if (head.count > scratch->header.label_count)
		scratch->is_label_cut = 1;
}

/* Reads so many bytes of attributes: the number of a key, the length of the value, the value. */
static __always_inline void read_attributes(struct scratch *scratch, __u64 address, __u64 bytes,
					    struct task_struct *other)
{
	__u64 end = address + bytes;

	for (__u32 i = 0; i <= MAX_LABELS; i++) {
		struct sample_label *label;
		struct thread_attribute attribute;
		struct go_text value;

		if (address + sizeof(attribute) > end || read_user(&attribute, sizeof(attribute), address, other))
			break;
		value.address = address + sizeof(attribute);
		value.count = attribute.value_bytes;
		address = value.address + value.count;
		if (address > end || !(label = next_label(scratch)))
			break;
		label->value_bytes = copy_text(scratch, label->value, sizeof(label->value), &value, other);
		label->key[0] = attribute.key;
		label->key_bytes = LABEL_KEY_IS_NUMBER;
	}
}

/* Where the labels of the goroutine are that a thread works on, 0 for none; `goroutine` may be its scheduler's. */
static __always_inline __u64 goroutine_labels(const struct thread_variable *variable, __u64 goroutine,
					      struct task_struct *other)
{
	__u64 thread = 0, current = 0, labels = 0;

	if (read_user(&thread, sizeof(thread), goroutine + GOROUTINE_THREAD_OFFSET, other) || thread == 0 ||
	    read_user(&current, sizeof(current), thread + variable->current_offset, other) || current == 0 ||
	    read_user(&labels, sizeof(labels), current + variable->labels_offset, other))
		return 0;
	return labels;
}

/* Reads the labels that a thread points to: `pointer` is to its goroutine, or to a set of custom-labels. */
static __always_inline void read_labels(struct scratch *scratch, const struct thread_variable *variable, __u64 pointer,
					struct task_struct *other)
{
	bool is_custom = variable->format == CONTEXT_CUSTOM_LABELS;
	__u64 labels = is_custom ? pointer : goroutine_labels(variable, pointer, other);
	struct go_text list;

	/* A list and a set begin with where it is and how long; a variable of a map is where that is. */
	if (labels == 0)
		return;
	if (read_user(&list, sizeof(list), labels, other)) {
		count(COUNTER_TRACE_CONTEXT_UNREAD);
		return;
	}
	if (variable->format == CONTEXT_GOROUTINE_MAP)
		read_map(scratch, list.address, other);
	else
		read_pairs(scratch, &list, is_custom, other);
}

#endif
