/*
 * Asks the kernel for memory in three ways and gives all of it back but the heap's. Arguments: rounds, a file.
 * It gets the bytes that each way has asked for, by the process's own VmData.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

/* VmData of /proc/self/status, bytes. */
static long private_bytes(void)
{
	char text[4096], *line;
	FILE *status = fopen("/proc/self/status", "r");
	size_t length;

	if (!status)
		exit(1);
	setvbuf(status, 0, _IONBF, 0);
	length = fread(text, 1, sizeof(text) - 1, status);
	fclose(status);
	text[length] = 0;
	line = strstr(text, "VmData:");
	return line ? atol(line + 7) * 1024 : 0;
}

__attribute__((noinline)) static long map_some(long rounds)
{
	long before = private_bytes();
	void *memory[256];

	for (long i = 0; i < rounds; i++)
		memory[i] = mmap(0, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long grown = private_bytes() - before;
	for (long i = 0; i < rounds; i++)
		munmap(memory[i], MIB);
	return grown;
}

__attribute__((noinline)) static long extend_heap(long rounds)
{
	long before = private_bytes();

	for (long i = 0; i < rounds; i++)
		if (sbrk(8192) == (void *)-1)
			exit(1);
	return private_bytes() - before;
}

__attribute__((noinline)) static long make_writable(long rounds)
{
	char *memory = mmap(0, rounds * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long before = private_bytes();

	for (long i = 0; i < rounds; i++)
		mprotect(memory + i * MIB, MIB, PROT_READ | PROT_WRITE);
	long grown = private_bytes() - before;
	munmap(memory, rounds * MIB);
	return grown;
}

int main(int count, char **arguments)
{
	long rounds = atol(arguments[1]), mapped, extended, writable;
	FILE *truth;

	if (count < 3 || rounds > 256)
		return 1;
	/* The heap that reading the file takes is there from now on. */
	private_bytes();
	mapped = map_some(rounds);
	extended = extend_heap(rounds);
	writable = make_writable(rounds);
	truth = fopen(arguments[2], "w");
	if (!truth)
		return 1;
	fprintf(truth, "%ld %ld %ld\n", mapped, extended, writable);
	return fclose(truth);
}
