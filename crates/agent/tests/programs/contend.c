/*
 * Threads that map and unmap memory, for which the kernel takes one lock of the process. Arguments: milliseconds,
 * a file. It gets the nanoseconds that their calls took together.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "../../../ebpf/tests/programs/times.h"

enum { THREADS = 4, BYTES = 1 << 20 };

static long duration;
static long spent[THREADS];

__attribute__((noinline)) static void map_and_unmap(void)
{
	char *memory = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	munmap(memory, BYTES);
	sink++;
}

static void *work(void *argument)
{
	long number = (long)argument, began = nanoseconds(CLOCK_MONOTONIC);

	while (nanoseconds(CLOCK_MONOTONIC) - began < duration)
		map_and_unmap();
	spent[number] = nanoseconds(CLOCK_MONOTONIC) - began;
	return 0;
}

int main(int count, char **arguments)
{
	pthread_t threads[THREADS];
	long sum = 0;
	FILE *truth;

	if (count < 3)
		return 1;
	duration = atol(arguments[1]) * 1000000L;
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], 0, work, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], 0);
		sum += spent[i];
	}
	truth = fopen(arguments[2], "w");
	if (!truth)
		return 1;
	fprintf(truth, "%ld\n", sum);
	return fclose(truth);
}
