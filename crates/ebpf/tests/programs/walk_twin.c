/*
 * The BPF walk compiled for user space. Reads cases from standard input, walks
 * each, writes the result and the frames. The layout is that of tests/twins.rs.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t __u8;
typedef int16_t __s16;
typedef uint32_t __u32;
typedef int32_t __s32;
typedef unsigned long long __u64;
typedef long long __s64;

#include "tables.h"

#define MAX_TABLES 4

static struct {
	struct unwind_rule *rules;
	__u32 rule_count;
	struct table_element *tables[MAX_TABLES];
	__u32 element_counts[MAX_TABLES];
	struct region *regions;
	__u32 region_count;
	__u64 stack_base;
	__u8 *stack;
	__u32 stack_bytes;
} input;

/* A table's number and one, so that the first is not "no table". */
typedef __u32 table_handle;

static table_handle table_open(__u32 table)
{
	return table < MAX_TABLES && input.tables[table] ? table + 1 : 0;
}

static const struct table_element *table_element(table_handle table, __u32 index)
{
	return index < input.element_counts[table - 1] ? &input.tables[table - 1][index] : 0;
}

static bool rule_at(__u32 index, struct unwind_rule *out)
{
	if (index >= input.rule_count)
		return false;
	*out = input.rules[index];
	return true;
}

static bool region_at(__u32 index, struct region *out)
{
	if (index >= input.region_count)
		return false;
	*out = input.regions[index];
	return true;
}

static bool read_word(struct walk *walk, __u64 address, __u64 *out)
{
	__u64 offset = address - input.stack_base;

	(void)walk;
	if (address < input.stack_base || offset > input.stack_bytes || input.stack_bytes - offset < sizeof(*out))
		return false;
	memcpy(out, input.stack + offset, sizeof(*out));
	return true;
}

#include "walk.h"

static bool try_read(void *out, size_t bytes)
{
	return fread(out, 1, bytes, stdin) == bytes;
}

static void *read_array(__u32 *count, size_t size)
{
	void *array;

	if (!try_read(count, sizeof(*count)))
		exit(2);
	array = calloc(*count + 1, size);
	if (!try_read(array, *count * size))
		exit(2);
	return array;
}

int main(void)
{
	__u32 present;

	while (try_read(&present, sizeof(present))) {
		__u64 registers[DWARF_REGISTERS + 1], frames[256];
		struct walk walk = { .result = WALK_TRUNCATED_DEPTH, .is_leaf = 1, .exact_pc = 1 };

		input.rules = read_array(&input.rule_count, sizeof(struct unwind_rule));
		for (int table = 0; table < MAX_TABLES; table++) {
			input.tables[table] = read_array(&input.element_counts[table], sizeof(struct table_element));
			if (!(present & (1u << table)))
				input.tables[table] = 0;
		}
		input.regions = read_array(&input.region_count, sizeof(struct region));
		if (!try_read(registers, sizeof(registers)) || !try_read(&input.stack_base, sizeof(input.stack_base)))
			return 2;
		input.stack = read_array(&input.stack_bytes, 1);

		memcpy(walk.registers, registers, sizeof(walk.registers));
		walk.rbp = registers[DWARF_RBP];
		walk.rsp = registers[DWARF_RSP];
		walk.pc = registers[DWARF_REGISTERS];
		walk.region_count = input.region_count;
		while (walk.frames < 256) {
			frames[walk.frames++] = lookup_address(&walk);
			if (walk_step(&walk))
				break;
		}
		__u32 header[2] = { walk.result, walk.frames };
		fwrite(header, sizeof(header), 1, stdout);
		fwrite(frames, sizeof(frames[0]), walk.frames, stdout);
	}
	return 0;
}
