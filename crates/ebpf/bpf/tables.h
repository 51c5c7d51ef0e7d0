/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/* The unwind table format of candela-unwind and the state of one walk over it. */
#ifndef CANDELA_TABLES_H
#define CANDELA_TABLES_H

enum walk_result {
	WALK_COMPLETE = 0,
	WALK_TRUNCATED_DEPTH = 1,
	WALK_TRUNCATED_STACK = 2,
	WALK_NO_MAPPING = 3,
	WALK_NO_TABLE = 4,
	WALK_NO_RULE = 5,
	WALK_BAD_READ = 6,
	WALK_NO_PROGRESS = 7,
	WALK_KERNEL_ONLY = 8,
};

enum cfa_kind {
	CFA_NO_RULE = 0,
	CFA_RSP = 1,
	CFA_RBP = 2,
	CFA_PLT = 3,
	CFA_DEREF_RBP = 4,
	CFA_DEREF_RSP = 5,
	CFA_END = 6,
	CFA_SIGNAL = 7,
	CFA_FRAME_POINTER = 8,
	CFA_REGISTER = 9,
};

enum fp_kind {
	FP_SAME = 0,
	FP_CFA_OFFSET = 1,
	FP_UNDEFINED = 2,
	FP_RBP_OFFSET = 3,
};

enum region_kind {
	REGION_TABLE = 0,
	REGION_FRAME_POINTER = 1,
};

/* A table is read by cache lines: one map lookup yields this many words of the format. */
enum {
	ELEMENT_WORDS = 16,
};

struct table_element {
	__u32 words[ELEMENT_WORDS];
};

struct unwind_rule {
	__u8 cfa_kind;
	__u8 fp_kind;
	__s16 fp_offset;
	__s32 cfa_offset;
};

/* One executable mapping; a process owns an ascending run of them. */
struct region {
	__u64 start;
	__u64 end;
	__u64 bias;
	__u32 table;
	__u32 kind;
};

enum {
	/* Words of stack kept by read_word, and how many of them lie below the one asked for. */
	WINDOW_WORDS = 64,
	WINDOW_BELOW = 8,
	DWARF_RBP = 6,
	DWARF_RSP = 7,
	DWARF_REGISTERS = 16,
	/* A 64 KiB page holds at most 2^16 rows, which lie in 2^12 elements and a part of one more. */
	ELEMENT_SEARCH_STEPS = 13,
	/* A process has at most 2^16 regions. */
	REGION_SEARCH_STEPS = 17,
};

struct walk {
	__u64 pc;
	__u64 rsp;
	__u64 rbp;
	/* Those of the leaf frame. */
	__u64 registers[DWARF_REGISTERS];
	/* The region of the previous frame: most calls stay inside one object. */
	struct region region;
	/* Of read_word: one read of a piece of stack serves several frames. */
	__u64 window_base;
	__u64 window[WINDOW_WORDS];
	__u32 window_words;
	__u32 first_region;
	__u32 region_count;
	__u32 frames;
	__u8 result;
	__u8 is_leaf;
	/* pc is the interrupted instruction itself, not a return address. */
	__u8 exact_pc;
	__u8 reserved[5];
};

#endif
