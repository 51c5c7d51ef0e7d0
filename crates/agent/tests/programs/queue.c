/*
 * Threads that want the same CPU: all of the time, or for a moment again and again. Arguments: milliseconds,
 * "busy" where all of them want it all of the time, a file. It gets the nanoseconds that they waited for it, by the
 * scheduler's own account.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "../../../ebpf/tests/programs/times.h"

enum { THREADS = 4 };

static long duration;
static int all_busy;
static long waited[THREADS];

/* The second number of schedstat, which counts up to the last time that the thread came to run. */
static long run_delay(void)
{
	char path[64];
	long ran, delayed = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", gettid());
	FILE *file = fopen(path, "r");
	if (!file || fscanf(file, "%ld %ld", &ran, &delayed) != 2)
		exit(1);
	fclose(file);
	return delayed;
}

__attribute__((noinline)) static void compete(long until, int is_busy)
{
	while (nanoseconds(CLOCK_MONOTONIC) < until) {
		burn(200000);
		if (!is_busy)
			rest(200000);
	}
}

static void *work(void *argument)
{
	long number = (long)argument, before = run_delay();

	compete(nanoseconds(CLOCK_MONOTONIC) + duration, all_busy || number % 2);
	waited[number] = run_delay() - before;
	return 0;
}

int main(int count, char **arguments)
{
	pthread_t threads[THREADS];
	cpu_set_t first;
	long sum = 0;
	FILE *truth;

	if (count < 3)
		return 1;
	duration = atol(arguments[1]) * 1000000L;
	all_busy = count > 3;
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_setaffinity(0, sizeof(first), &first);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], 0, work, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], 0);
		sum += waited[i];
	}
	truth = fopen(arguments[count - 1], "w");
	if (!truth)
		return 1;
	fprintf(truth, "%ld\n", sum);
	return fclose(truth);
}
