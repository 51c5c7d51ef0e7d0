/*
 * Waits in a known way. Arguments: the way and milliseconds to go on for.
 *   duty: burns 10 ms of CPU time and sleeps 30 ms, in turns
 *   short: sleeps a tenth of a millisecond, again and again
 *   sleep, futex, pipe, poll: one wait that lasts until the program is killed
 * The first two print how long they took and how much CPU time, in nanoseconds.
 */
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long nanoseconds(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

__attribute__((noinline)) static void burn(long duration)
{
	long start = nanoseconds(CLOCK_THREAD_CPUTIME_ID);

	while (nanoseconds(CLOCK_THREAD_CPUTIME_ID) - start < duration)
		for (volatile int i = 0; i < 1000; i++)
			;
}

__attribute__((noinline)) static void rest(long duration)
{
	struct timespec time = { duration / 1000000000L, duration % 1000000000L };

	nanosleep(&time, 0);
}

__attribute__((noinline)) static int wait_for_ever(const char *way)
{
	static int word;
	int ends[2];
	char byte;
	struct pollfd poll_end = { 0 };

	if (pipe(ends))
		return 1;
	poll_end.fd = ends[0];
	poll_end.events = POLLIN;
	if (!strcmp(way, "sleep"))
		rest(1000000000L * 1000);
	else if (!strcmp(way, "futex"))
		syscall(SYS_futex, &word, FUTEX_WAIT, 0, 0, 0, 0);
	else if (!strcmp(way, "pipe"))
		return read(ends[0], &byte, 1) == 1;
	else if (!strcmp(way, "poll"))
		return poll(&poll_end, 1, -1) == 1;
	return 2;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "duty";
	long duration = (argc > 2 ? atol(argv[2]) : 1000) * 1000000L;
	long start = nanoseconds(CLOCK_MONOTONIC);
	long burned = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
	int is_duty = !strcmp(way, "duty");

	if (!is_duty && strcmp(way, "short"))
		return wait_for_ever(way);
	while (nanoseconds(CLOCK_MONOTONIC) - start < duration) {
		if (is_duty)
			burn(10000000);
		rest(is_duty ? 30000000 : 100000);
	}
	printf("%ld %ld\n", nanoseconds(CLOCK_MONOTONIC) - start, nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - burned);
	return 0;
}
