/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * One step of the stack walk over compact unwind tables: the C twin of
 * candela-unwind's walk. It is plain C over four primitives, so that a test
 * can compile it for user space and run both twins on the same stack:
 *
 *   table_handle: what table_open gives, comparable with 0
 *   table_handle table_open(__u32 table)
 *   const struct table_element *table_element(table_handle table, __u32 index), 0 behind the end
 *   bool rule_at(__u32 index, struct unwind_rule *out)
 *   bool region_at(__u32 index, struct region *out)
 *   bool read_word(struct walk *walk, __u64 address, __u64 *out)
 */
#ifndef CANDELA_WALK_H
#define CANDELA_WALK_H

#include "tables.h"

static __always_inline bool find_region(struct walk *walk, __u64 address)
{
	struct region candidate;
	__u32 low = 0, high = walk->region_count;

	if (address >= walk->region.start && address < walk->region.end)
		return true;

	for (int step = 0; step < REGION_SEARCH_STEPS; step++) {
		if (low >= high)
			break;
		__u32 middle = low + (high - low) / 2;
		if (!region_at(walk->first_region + middle, &candidate))
			return false;
		if (address >= candidate.end) {
			low = middle + 1;
		} else if (address < candidate.start) {
			high = middle;
		} else {
			walk->region = candidate;
			return true;
		}
	}
	return false;
}

static __always_inline bool table_word(table_handle table, __u32 index, __u32 *word)
{
	const struct table_element *element = table_element(table, index / ELEMENT_WORDS);

	if (!element)
		return false;
	*word = element->words[index % ELEMENT_WORDS];
	return true;
}

/*
 * The last of the rows [low, high) at or before target, or row low - 1 where they
 * all lie behind it: a page without an earlier row continues the page before.
 */
static __always_inline bool last_row_until(table_handle table, __u32 low, __u32 high, __u32 target, __u32 *row)
{
	const struct table_element *element;
	/* Elements that begin inside the page: the last whose first row is <= target holds the row. */
	__u32 first = low / ELEMENT_WORDS + 1;
	__u32 last = (high + ELEMENT_WORDS - 1) / ELEMENT_WORDS;

	for (int step = 0; step < ELEMENT_SEARCH_STEPS; step++) {
		if (first >= last)
			break;
		__u32 middle = first + (last - first) / 2;
		element = table_element(table, middle);
		if (!element)
			return false;
		if ((element->words[0] >> 16) <= target)
			first = middle + 1;
		else
			last = middle;
	}

	__u32 base = (first - 1) * ELEMENT_WORDS;
	__u32 begin = low > base ? low - base : 0;
	__u32 end = high - base < ELEMENT_WORDS ? high - base : ELEMENT_WORDS;
	element = table_element(table, first - 1);
	if (!element)
		return false;
	/* Invariant: the words before begin are <= target or before the page, those from end on are >. */
	for (int step = 0; step < 5; step++) {
		if (begin >= end)
			break;
		__u32 middle = (begin + end) / 2;
		if ((element->words[middle % ELEMENT_WORDS] >> 16) <= target)
			begin = middle + 1;
		else
			end = middle;
	}
	if (begin > 0) {
		*row = element->words[(begin - 1) % ELEMENT_WORDS];
		return true;
	}
	return table_word(table, base - 1, row);
}

/* The row that holds at address, as in the table format; false where none does. */
static __always_inline bool find_row(table_handle table, __u64 address, __u32 *row)
{
	const struct table_element *header = table_element(table, 0);
	__u64 page = address >> 16;
	__u32 low, high, page_count;

	if (!header)
		return false;
	page_count = header->words[1];
	if (page < header->words[0] || page - header->words[0] >= page_count)
		return false;
	page -= header->words[0];
	if (!table_word(table, 2 + page, &low) || !table_word(table, 3 + page, &high))
		return false;
	__u32 first_row = 3 + page_count;
	if (low < first_row || high < low)
		return false;
	if (!last_row_until(table, low, high, address & 0xffff, row))
		return false;
	/* Before the very first row there is only the index of pages. */
	if (low == first_row) {
		__u32 first;
		if (!table_word(table, first_row, &first))
			return false;
		if (first_row == high || (first >> 16) > (address & 0xffff))
			return false;
	}
	return true;
}

static __always_inline bool find_rule(const struct walk *walk, table_handle table, __u64 address,
				      struct unwind_rule *rule)
{
	__u32 row;

	if (!find_row(table, address - walk->region.bias, &row))
		return false;
	return rule_at(row & 0xffff, rule);
}

/* Ends the walk. */
static __always_inline int stop(struct walk *walk, __u8 result)
{
	walk->result = result;
	return 1;
}

static __always_inline int enter_caller(struct walk *walk, __u64 pc, __u64 rsp, __u64 rbp, bool exact)
{
	/* Coroutine libraries and thread entries put a zero where the return address would be. */
	if (pc == 0)
		return stop(walk, WALK_COMPLETE);
	walk->pc = pc;
	walk->rsp = rsp;
	walk->rbp = rbp;
	walk->is_leaf = 0;
	walk->exact_pc = exact;
	return 0;
}

/*
 * [rbp] is the caller's rbp, [rbp + 8] the return address. Where a row asks for
 * this step it may lead to another stack (Go's systemstack); elsewhere the chain
 * must grow.
 */
static __always_inline int frame_pointer_step(struct walk *walk, bool must_grow)
{
	__u64 rbp, return_address;

	if (must_grow && walk->rbp + 16 <= walk->rsp)
		return stop(walk, WALK_NO_PROGRESS);
	if (!read_word(walk, walk->rbp, &rbp) || !read_word(walk, walk->rbp + 8, &return_address))
		return stop(walk, WALK_BAD_READ);
	return enter_caller(walk, return_address, walk->rbp + 16, rbp, false);
}

/* Offsets of the x86-64 struct ucontext: uc_mcontext at 40, in it rbp, rsp and rip. */
static __always_inline int signal_step(struct walk *walk)
{
	__u64 rbp, rsp, rip;

	if (!read_word(walk, walk->rsp + 0x78, &rbp) || !read_word(walk, walk->rsp + 0xa0, &rsp) ||
	    !read_word(walk, walk->rsp + 0xa8, &rip))
		return stop(walk, WALK_BAD_READ);
	return enter_caller(walk, rip, rsp, rbp, true);
}

/* A return address may be the first byte of the next function, so the call is what is looked up. */
static __always_inline __u64 lookup_address(const struct walk *walk)
{
	return walk->exact_pc ? walk->pc : walk->pc - 1;
}

/* Moves from one frame to its caller. 0: go on, 1: the walk ended with walk->result. */
static __always_inline int walk_step(struct walk *walk)
{
	struct unwind_rule rule;
	__u64 cfa, return_address, rbp;
	__u64 address = lookup_address(walk);

	if (!find_region(walk, address)) {
		/* Memory we were not told about is most often fresh JIT code, which keeps frame
		 * pointers. Where they lead nowhere, the missing mapping is the cause to report. */
		int ended = frame_pointer_step(walk, true);
		if (ended && walk->result != WALK_COMPLETE)
			walk->result = WALK_NO_MAPPING;
		return ended;
	}
	if (walk->region.kind == REGION_FRAME_POINTER) {
		if (walk->rbp == 0)
			return stop(walk, WALK_COMPLETE);
		return frame_pointer_step(walk, true);
	}
	table_handle table = table_open(walk->region.table);
	if (!table)
		return stop(walk, WALK_NO_TABLE);
	if (!find_rule(walk, table, address, &rule))
		return stop(walk, WALK_NO_RULE);

	switch (rule.cfa_kind) {
	case CFA_RSP:
		cfa = walk->rsp + (__s64)rule.cfa_offset;
		break;
	case CFA_RBP:
		cfa = walk->rbp + (__s64)rule.cfa_offset;
		break;
	case CFA_PLT:
		cfa = walk->rsp + 8 + ((__s32)(address & 15) >= rule.cfa_offset ? 8 : 0);
		break;
	case CFA_DEREF_RBP:
		if (!read_word(walk, walk->rbp + (__s64)rule.cfa_offset, &cfa))
			return stop(walk, WALK_BAD_READ);
		break;
	case CFA_DEREF_RSP:
		if (!read_word(walk, walk->rsp + (__s64)(__s16)(rule.cfa_offset & 0xffff), &cfa))
			return stop(walk, WALK_BAD_READ);
		cfa += (__s64)(rule.cfa_offset >> 16);
		break;
	case CFA_END:
		return stop(walk, WALK_COMPLETE);
	case CFA_SIGNAL:
		return signal_step(walk);
	case CFA_FRAME_POINTER:
		if (walk->rbp == 0)
			return stop(walk, WALK_COMPLETE);
		return frame_pointer_step(walk, false);
	case CFA_REGISTER:
		if (!walk->is_leaf)
			return stop(walk, WALK_NO_RULE);
		cfa = walk->registers[rule.cfa_offset & (DWARF_REGISTERS - 1)] + (__s64)(rule.cfa_offset >> 8);
		break;
	default:
		return stop(walk, WALK_NO_RULE);
	}

	if (cfa <= walk->rsp)
		return stop(walk, WALK_NO_PROGRESS);
	if (!read_word(walk, cfa - 8, &return_address))
		return stop(walk, WALK_BAD_READ);

	rbp = walk->rbp;
	if (rule.fp_kind == FP_UNDEFINED) {
		rbp = 0;
	} else if (rule.fp_kind != FP_SAME) {
		__u64 base = rule.fp_kind == FP_CFA_OFFSET ? cfa : rbp;
		if (!read_word(walk, base + (__s64)rule.fp_offset, &rbp))
			return stop(walk, WALK_BAD_READ);
	}
	return enter_caller(walk, return_address, cfa, rbp, false);
}

#endif
