/*
 * Writes blocks past the page cache, one request each. Arguments: requests, a file for the blocks, a file. That
 * gets the nanoseconds that all writes together took; nothing where the file system has no device behind it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../../ebpf/tests/programs/times.h"

enum { BLOCK = 4096 };

__attribute__((noinline)) static int write_blocks(int file, const char *block, long requests)
{
	for (long i = 0; i < requests; i++)
		if (pwrite(file, block, BLOCK, i * BLOCK) != BLOCK)
			return 1;
	return 0;
}

int main(int count, char **arguments)
{
	long requests = atol(arguments[1]), began;
	char *block = aligned_alloc(BLOCK, BLOCK);
	int file = open(arguments[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
	FILE *truth = fopen(arguments[3], "w");

	if (count < 4 || file < 0 || !block || !truth)
		return 1;
	memset(block, 1, BLOCK);
	/* So that the later writes find their blocks there. */
	if (write_blocks(file, block, requests) || fsync(file) || close(file))
		return 1;
	file = open(arguments[2], O_RDWR | O_DIRECT);
	if (file < 0)
		return fclose(truth);
	began = nanoseconds(CLOCK_MONOTONIC);
	if (write_blocks(file, block, requests))
		return fclose(truth);
	fprintf(truth, "%ld\n", nanoseconds(CLOCK_MONOTONIC) - began);
	return fclose(truth);
}
