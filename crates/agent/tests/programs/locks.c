/*
 * Waits for a lock in a known way. Arguments: how often, a file, and "inherit" for a mutex with priority inheritance.
 * The thread "keeper" holds a mutex for 20 ms at a time; main wants it meanwhile, in contend(). Then it writes
 * how often it waited, how long in nanoseconds, and the mutex's address.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../ebpf/tests/programs/times.h"

static pthread_mutex_t mutex;
static volatile int is_held;
static volatile int rounds;

static void *keep(void *unused)
{
	while (rounds > 0) {
		if (is_held) {
			rest(100000);
			continue;
		}
		pthread_mutex_lock(&mutex);
		is_held = 1;
		rest(20000000);
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

__attribute__((noinline)) static long contend(void)
{
	long start = nanoseconds(CLOCK_MONOTONIC);

	pthread_mutex_lock(&mutex);
	return nanoseconds(CLOCK_MONOTONIC) - start;
}

int main(int argc, char **argv)
{
	FILE *file = argc > 2 ? fopen(argv[2], "w") : 0;
	pthread_mutexattr_t attributes;
	pthread_t keeper;
	long waited = 0;

	if (!file)
		return 1;
	pthread_mutexattr_init(&attributes);
	if (argc > 3 && pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT))
		return 1;
	if (pthread_mutex_init(&mutex, &attributes))
		return 1;
	rounds = atoi(argv[1]);
	if (pthread_create(&keeper, 0, keep, 0) || pthread_setname_np(keeper, "keeper"))
		return 1;
	for (; rounds > 0; rounds--) {
		while (!is_held)
			rest(100000);
		waited += contend();
		is_held = 0;
		pthread_mutex_unlock(&mutex);
	}
	pthread_join(keeper, 0);
	fprintf(file, "%s %ld %p\n", argv[1], waited, (void *)&mutex);
	return fclose(file);
}
