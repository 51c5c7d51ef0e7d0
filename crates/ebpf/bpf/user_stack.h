/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/* The user stack of a sample: walked in the kernel, or copied for user space to walk. */
#ifndef CANDELA_USER_STACK_H
#define CANDELA_USER_STACK_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "maps.h"
#include "trace_context.h"
#include "user_memory.h"

/* === the walk's primitives === */

typedef void *table_handle;

static __always_inline table_handle table_open(__u32 table)
{
	return bpf_map_lookup_elem(&tables, &table);
}

static __always_inline const struct table_element *table_element(table_handle table, __u32 index)
{
	return bpf_map_lookup_elem(table, &index);
}

static __always_inline bool rule_at(__u32 index, struct unwind_rule *out)
{
	struct unwind_rule *rule = bpf_map_lookup_elem(&rules, &index);
	if (!rule)
		return false;
	*out = *rule;
	return true;
}

static __always_inline bool region_at(__u32 index, struct region *out)
{
	struct region *region = bpf_map_lookup_elem(&regions, &index);
	if (!region)
		return false;
	*out = *region;
	return true;
}

/* Frames are mostly small and ascend, and a read costs about the same for one word as for many. */
static __always_inline bool read_word(struct walk *walk, __u64 address, __u64 *out)
{
	__u64 index = (address - walk->window_base) / 8;

	if (address & 7)
		return bpf_probe_read_user(out, sizeof(*out), (void *)address) == 0;
	if (address < walk->window_base || index >= walk->window_words) {
		walk->window_base = address - WINDOW_BELOW * 8;
		walk->window_words = 0;
		if (bpf_probe_read_user(walk->window, sizeof(walk->window), (void *)walk->window_base))
			/* The end of the stack, or no stack at all. */
			return bpf_probe_read_user(out, sizeof(*out), (void *)address) == 0;
		walk->window_words = WINDOW_WORDS;
		index = WINDOW_BELOW;
	}
	barrier_var(index);
	if (index >= WINDOW_WORDS)
		return false;
	*out = walk->window[index];
	return true;
}

static __always_inline struct scratch *scratch_of(__u32 area)
{
	return bpf_map_lookup_elem(&scratch_areas, &area);
}

#include "walk.h"

/* === user stack === */

struct walk_context {
	__u32 area;
	__u64 now;
};

static __always_inline void stamp_table(const struct region *region, __u64 now)
{
	__u32 table = region->table;
	__u64 *stamp;

	if (region->kind != REGION_TABLE)
		return;
	stamp = bpf_map_lookup_elem(&table_last_used, &table);
	/* A coarse stamp spares the other CPUs' caches. */
	if (stamp && now - *stamp > 1000000000)
		*stamp = now;
}

static long walk_one_frame(__u32 index, void *opaque)
{
	struct walk_context *context = opaque;
	struct scratch *scratch = scratch_of(context->area);
	struct walk *walk;
	__u32 slot;

	if (!scratch)
		return 1;
	walk = &scratch->walk;
	slot = scratch->header.kernel_frames + walk->frames;
	if (slot >= MAX_FRAMES)
		return stop(walk, WALK_TRUNCATED_DEPTH);
	((__u64 *)scratch->payload)[slot] = lookup_address(walk);
	walk->frames++;

	__u64 region_before = walk->region.start;
	int ended = walk_step(walk);
	if (walk->region.start != region_before)
		stamp_table(&walk->region, context->now);
	return ended;
}

static __always_inline void keep_registers(struct scratch *scratch, const struct pt_regs *from)
{
	__u64 *to = scratch->entry_registers;

	to[0] = from->ax;
	to[1] = from->dx;
	to[2] = from->cx;
	to[3] = from->bx;
	to[4] = from->si;
	to[5] = from->di;
	to[6] = from->bp;
	to[7] = from->sp;
	to[8] = from->r8;
	to[9] = from->r9;
	to[10] = from->r10;
	to[11] = from->r11;
	to[12] = from->r12;
	to[13] = from->r13;
	to[14] = from->r14;
	to[15] = from->r15;
	to[16] = from->ip;
}

static __always_inline void walk_user_stack(struct scratch *scratch, __u32 area, __u64 now)
{
	struct walk *walk = &scratch->walk;
	struct walk_context context = { .area = area, .now = now };
	__u32 pid = scratch->header.pid;
	struct process *process = bpf_map_lookup_elem(&processes, &pid);

	walk->frames = 0;
	if (!process) {
		count(COUNTER_UNKNOWN_PROCESS);
		walk->result = WALK_NO_MAPPING;
		return;
	}
	scratch->header.flags |= SAMPLE_PROCESS_KNOWN;
	if (process->context.kind != THREAD_VARIABLE_NONE)
		read_own_trace_context(scratch, &process->context);
	walk->first_region = process->first_region;
	walk->region_count = process->region_count;
	walk->window_words = 0;
	walk->region.start = 0;
	walk->region.end = 0;
	__builtin_memcpy(walk->registers, scratch->entry_registers, sizeof(walk->registers));
	walk->rbp = scratch->entry_registers[DWARF_RBP];
	walk->rsp = scratch->entry_registers[DWARF_RSP];
	walk->pc = scratch->entry_registers[16];
	walk->is_leaf = 1;
	walk->exact_pc = 1;
	walk->result = WALK_TRUNCATED_DEPTH;
	bpf_loop(MAX_USER_FRAMES, walk_one_frame, &context, 0);
}

/* === what user space walks because our tables could not === */

/* A process may cause a burst of copies, as when it starts, and then a few per second. */
static __always_inline bool copy_allowed(__u32 pid, __u64 now)
{
	struct copy_budget *budget = bpf_map_lookup_elem(&copy_budgets, &pid);

	if (settings.copy_cost_ns == 0)
		return false;
	if (!budget) {
		struct copy_budget fresh = {
			.updated_ns = now,
			.credit_ns = settings.copy_credit_limit_ns - settings.copy_cost_ns,
		};
		bpf_map_update_elem(&copy_budgets, &pid, &fresh, BPF_ANY);
		return true;
	}
	/* Another CPU may have come with a later time. */
	if (now > budget->updated_ns) {
		budget->credit_ns += now - budget->updated_ns;
		budget->updated_ns = now;
	}
	if (budget->credit_ns > settings.copy_credit_limit_ns)
		budget->credit_ns = settings.copy_credit_limit_ns;
	if (budget->credit_ns < settings.copy_cost_ns)
		return false;
	budget->credit_ns -= settings.copy_cost_ns;
	return true;
}

/* Appends registers and the readable part of the stack at payload[end]; the new end. */
static __always_inline __u32 append_context(struct scratch *scratch, __u32 end, struct task_struct *other)
{
	__u64 address = scratch->entry_registers[DWARF_RSP];
	/* Whole pages after the first piece: a page is readable entirely or not at all. */
	__u32 piece = PAGE_BYTES - (address & (PAGE_BYTES - 1));
	__u32 copied = 0;

	if (end > MAX_FRAMES * 8)
		return end;
	end = at_most(end, MAX_FRAMES * 8);
	__builtin_memcpy(scratch->payload + end, scratch->entry_registers, sizeof(scratch->entry_registers));
	end += sizeof(scratch->entry_registers);
	scratch->header.flags |= SAMPLE_HAS_REGISTERS;

	for (int page = 0; page < MAX_STACK_PAGES; page++) {
		__u32 position = end + copied;
		barrier_var(position);
		if (page >= settings.stack_pages)
			break;
		if (position > sizeof(scratch->payload) - PAGE_BYTES)
			break;
		barrier_var(piece);
		if (piece > PAGE_BYTES)
			break;
		if (read_user(scratch->payload + position, piece, address + copied, other))
			break;
		copied += piece;
		piece = PAGE_BYTES;
	}
	scratch->header.stack_bytes = copied;
	return end + copied;
}

/* The registers with which a task will return to user space; not 0 where they cannot be read. */
static __always_inline long read_task_registers(struct scratch *scratch, struct task_struct *task)
{
	struct pt_regs *registers = &scratch->task_registers;

	return bpf_probe_read_kernel(registers, sizeof(*registers), (void *)bpf_task_pt_regs(task));
}

/* A 32-bit task: its frames are not laid out as the tables say. */
static __always_inline bool is_compat(struct scratch *scratch)
{
	if ((scratch->task_registers.cs & 0xffff) != COMPAT_CODE_SEGMENT)
		return false;
	count(COUNTER_COMPAT_TASK);
	scratch->header.result = WALK_NO_RULE;
	return true;
}

/*
 * Walks the current task's user stack from task_registers and appends its frames, or a copy of the stack
 * where tables are missing; the new end of the payload.
 */
static __always_inline __u32 append_user_stack(struct scratch *scratch, __u32 area, __u32 end)
{
	struct sample_header *header = &scratch->header;

	if (is_compat(scratch))
		return end;
	keep_registers(scratch, &scratch->task_registers);
	walk_user_stack(scratch, area, header->time_ns);
	header->result = scratch->walk.result;
	header->user_frames = scratch->walk.frames;
	end += header->user_frames * 8;
	if (header->result != WALK_NO_MAPPING && header->result != WALK_NO_TABLE)
		return end;
	if (!copy_allowed(header->pid, header->time_ns)) {
		count(COUNTER_COPIES_LIMITED);
		header->flags |= SAMPLE_COPY_LIMITED;
		return end;
	}
	count(COUNTER_STACK_COPIES);
	return append_context(scratch, end, 0);
}

/* === handing over === */

/* The reader polls on a timer; it is woken early only when the ring fills or tables are missing. */
static __always_inline __u64 wakeup_flag(bool urgent)
{
	__u64 waiting = bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA);
	__u64 size = bpf_ringbuf_query(&samples, BPF_RB_RING_SIZE);

	return urgent || waiting > size / 4 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* Appends the labels, which are read before the stack; the new end of the payload. */
static __always_inline __u32 append_labels(struct scratch *scratch, __u32 end)
{
	__u64 bytes = scratch->header.label_count * sizeof(scratch->labels[0]);

	if (bytes == 0)
		return end;
	barrier_var(bytes);
	barrier_var(end);
	if (bytes > sizeof(scratch->labels) || end > sizeof(scratch->payload) - sizeof(scratch->labels)) {
		scratch->header.label_count = 0;
		return end;
	}
	bpf_probe_read_kernel(scratch->payload + end, bytes, scratch->labels);
	return end + bytes;
}

/* Hands a record over; not 0 where it finds no room. */
static __always_inline long finish_record(struct scratch *scratch, __u32 payload_bytes)
{
	bool urgent = scratch->header.flags & SAMPLE_HAS_REGISTERS;
	__u64 bytes = sizeof(scratch->header) + append_labels(scratch, payload_bytes);

	barrier_var(bytes);
	if (bytes > sizeof(scratch->header) + sizeof(scratch->payload))
		return 0;
	return bpf_ringbuf_output(&samples, &scratch->header, bytes, wakeup_flag(urgent));
}

/* Counts the sample and hands it over. */
static __always_inline void finish_sample(struct scratch *scratch, __u32 payload_bytes)
{
	const struct sample_header *header = &scratch->header;

	count(COUNTER_SAMPLES);
	count_many(COUNTER_USER_FRAMES, header->user_frames);
	if (header->result <= COUNTER_RESULT_LAST - COUNTER_RESULT_FIRST)
		count(COUNTER_RESULT_FIRST + header->result);
	if (finish_record(scratch, payload_bytes))
		count(COUNTER_RING_FULL);
}

#endif
