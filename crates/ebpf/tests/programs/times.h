/* What the test programs that burn and sleep share; those of candela-agent use it, too. */
#ifndef TIMES_H
#define TIMES_H

#include <time.h>

static volatile int sink;

__attribute__((unused)) static long nanoseconds(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* CPU time. */
__attribute__((noinline, unused)) static void burn(long duration)
{
	long start = nanoseconds(CLOCK_THREAD_CPUTIME_ID);

	while (nanoseconds(CLOCK_THREAD_CPUTIME_ID) - start < duration)
		for (int i = 0; i < 1000; i++)
			sink += i;
}

__attribute__((noinline, unused)) static void rest(long duration)
{
	struct timespec time = { duration / 1000000000L, duration % 1000000000L };

	nanosleep(&time, 0);
	/* Lest the call above be a jump and this function not in the stack. */
	sink++;
}

#endif
