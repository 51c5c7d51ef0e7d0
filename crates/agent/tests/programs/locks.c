/*
 * Waits for a lock in a known way. Arguments: how often, a file, and "inherit" for a mutex with priority inheritance.
 * The thread "keeper" holds a mutex until main waits for it in contend(), and for 6 ms more. Then it is written how often
 * main waited, for how long in nanoseconds at least, as the keeper saw it, and at most, by main's own clock, and the
 * mutex's address.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../../ebpf/tests/programs/times.h"

static pthread_mutex_t mutex;
static volatile int is_held;
static volatile int rounds;
static long seen_waiting;

/* Whether main sleeps in its call: such a thread tells its number, and one that runs does not. */
static int main_waits(void)
{
	char path[64];
	long call = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", getpid());
	file = fopen(path, "r");
	if (!file)
		exit(1);
	if (fscanf(file, "%ld", &call) != 1)
		call = -1;
	fclose(file);
	return call == SYS_futex;
}

static void *keep(void *unused)
{
	while (rounds > 0) {
		long start;

		if (is_held) {
			rest(100000);
			continue;
		}
		pthread_mutex_lock(&mutex);
		is_held = 1;
		while (!main_waits())
			rest(100000);
		start = nanoseconds(CLOCK_MONOTONIC);
		rest(6000000);
		seen_waiting += nanoseconds(CLOCK_MONOTONIC) - start;
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
	while (rounds > 0) {
		while (!is_held)
			rest(100000);
		waited += contend();
		rounds--;
		pthread_mutex_unlock(&mutex);
		/* Last, so that the keeper never waits for the mutex. */
		is_held = 0;
	}
	pthread_join(keeper, 0);
	fprintf(file, "%s %ld %ld %p\n", argv[1], seen_waiting, waited, (void *)&mutex);
	return fclose(file);
}
