/*
 * The BPF walk compiled for user space. Reads cases from standard input, walks
 * each, writes the result and the frames. The layout is that of tests/support/twin.rs.
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

#define MAX_TABLES 64
#define MAX_PIECES 4096

static struct {
	struct unwind_rule *rules;
	__u32 rule_count;
	struct table_element *tables[MAX_TABLES];
	__u32 element_counts[MAX_TABLES];
	struct region *regions;
	__u32 region_count;
	struct {
		__u64 base;
		__u8 *data;
		__u32 bytes;
	} pieces[MAX_PIECES];
	__u32 piece_count;
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
	(void)walk;
	for (__u32 i = 0; i < input.piece_count; i++) {
		__u64 offset = address - input.pieces[i].base;
		__u32 bytes = input.pieces[i].bytes;
		if (address < input.pieces[i].base || offset > bytes || bytes - offset < sizeof(*out))
			continue;
		memcpy(out, input.pieces[i].data + offset, sizeof(*out));
		return true;
	}
	return false;
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

static __u32 read_count(__u32 most)
{
	__u32 count;

	if (!try_read(&count, sizeof(count)) || count > most)
		exit(2);
	return count;
}

int main(void)
{
	__u32 rule_count;

	while (try_read(&rule_count, sizeof(rule_count))) {
		__u64 registers[DWARF_REGISTERS + 1], frames[256];
		struct walk walk = { .result = WALK_TRUNCATED_DEPTH, .is_leaf = 1, .exact_pc = 1 };

		input.rule_count = rule_count;
		input.rules = calloc(rule_count + 1, sizeof(struct unwind_rule));
		if (fread(input.rules, sizeof(struct unwind_rule), rule_count, stdin) != rule_count)
			return 2;
		memset(input.tables, 0, sizeof(input.tables));
		__u32 table_count = read_count(MAX_TABLES);
		for (__u32 table = 0; table < table_count; table++) {
			__u32 is_loaded = read_count(1);
			void *elements = read_array(&input.element_counts[table], sizeof(struct table_element));
			if (is_loaded)
				input.tables[table] = elements;
		}
		input.regions = read_array(&input.region_count, sizeof(struct region));
		if (!try_read(registers, sizeof(registers)))
			return 2;
		input.piece_count = read_count(MAX_PIECES);
		for (__u32 piece = 0; piece < input.piece_count; piece++) {
			if (!try_read(&input.pieces[piece].base, sizeof(__u64)))
				return 2;
			input.pieces[piece].data = read_array(&input.pieces[piece].bytes, 1);
		}

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
