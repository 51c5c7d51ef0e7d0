/*
 * Tells of allocations and their ends as the library of candela-preload does, which are none: COUNT of each, once a
 * line has come.
 *
 *   tell COUNT
 */
#include <stdio.h>
#include <stdlib.h>

#define END_IS_TOLD (1ul << 32)

__attribute__((noinline, noclone)) void sampled(unsigned long address, unsigned long size, unsigned long sequence,
						unsigned long interval)
{
	__asm__ volatile("nop" : : "r"(address), "r"(size), "r"(sequence), "r"(interval) : "memory");
}

__attribute__((noinline, noclone)) void freed(unsigned long address, unsigned long sequence)
{
	__asm__ volatile("nop" : : "r"(address), "r"(sequence) : "memory");
}

int main(int count, char **arguments)
{
	unsigned long allocations = count > 1 ? strtoul(arguments[1], 0, 10) : 0;

	getchar();
	for (unsigned long i = 0; i < allocations; i++) {
		sampled(0x1000 + 16 * i, 16, i | END_IS_TOLD, 0);
		freed(0x1000 + 16 * i, i);
	}
	/* What was told is read while the process is there. */
	getchar();
	return 0;
}
