/*
 * Threads that map and unmap memory, for which the kernel takes one lock of the process. Arguments: milliseconds,
 * a file. It gets the nanoseconds that their calls took together, and of these those in which they slept: what is
 * neither time on a CPU nor a wait for one.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/mman.h>
#include "../../../ebpf/tests/programs/times.h"

enum { THREADS = 4, BYTES = 1 << 20 };

static long duration;
static long spent[THREADS];
static long slept[THREADS];

/* By the scheduler's account: the time of the calling thread on a CPU, and that for which it waited for one. */
static long awake(void)
{
	char path[64];
	long ran, delayed;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", gettid());
	FILE *file = fopen(path, "r");
	if (!file || fscanf(file, "%ld %ld", &ran, &delayed) != 2)
		exit(1);
	fclose(file);
	return ran + delayed;
}

__attribute__((noinline)) static void map_and_unmap(void)
{
	char *memory = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	munmap(memory, BYTES);
	sink++;
}

static void *work(void *argument)
{
	long number = (long)argument, awake_before = awake(), began = nanoseconds(CLOCK_MONOTONIC);

	while (nanoseconds(CLOCK_MONOTONIC) - began < duration)
		map_and_unmap();
	spent[number] = nanoseconds(CLOCK_MONOTONIC) - began;
	slept[number] = spent[number] - (awake() - awake_before);
	return 0;
}

int main(int count, char **arguments)
{
	pthread_t threads[THREADS];
	long sum = 0, sum_slept = 0;
	FILE *truth;

	if (count < 3)
		return 1;
	duration = atol(arguments[1]) * 1000000L;
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], 0, work, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], 0);
		sum += spent[i];
		sum_slept += slept[i];
	}
	truth = fopen(arguments[2], "w");
	if (!truth)
		return 1;
	fprintf(truth, "%ld %ld\n", sum, sum_slept);
	return fclose(truth);
}
