/*
 * Waits in a known way. Arguments: the way and milliseconds to go on for.
 *   duty: burns 10 ms of CPU time and sleeps 30 ms, in turns
 *   short: sleeps a tenth of a millisecond, again and again
 *   mixed: sleeps 30 ms once and a tenth of a millisecond ten times, in turns
 *   once: sleeps until the program is killed
 * All but the last print how long they took, how much CPU time and how much time asleep, in nanoseconds, and how
 * often they slept; then how often they meant to sleep 10 ms or longer, how often they did, how long the other
 * sleeps took together, and how often the process has left a CPU. A sleep is as long as it was off CPU, and none
 * where its timer was over before the thread had left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "times.h"

/* What tells long sleeps from short ones. */
static const long LONG = 10000000;

static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "duty";
	long duration = (argc > 2 ? atol(argv[2]) : 1000) * 1000000L;
	long start = nanoseconds(CLOCK_MONOTONIC);
	long burned = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
	long turn = 0, naps = 0, asleep = 0, meant_long = 0, long_naps = 0, shortly_asleep = 0;
	int is_duty = !strcmp(way, "duty"), is_mixed = !strcmp(way, "mixed");

	if (!strcmp(way, "once"))
		rest(1000000000000L);
	while (nanoseconds(CLOCK_MONOTONIC) - start < duration) {
		int is_long = is_duty || (is_mixed && turn++ % 11 == 0);
		long begun, ran, left, took;

		if (is_duty)
			burn(10000000);
		left = switches();
		ran = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
		begun = nanoseconds(CLOCK_MONOTONIC);
		rest(is_long ? 30000000 : 100000);
		took = nanoseconds(CLOCK_MONOTONIC) - begun;
		took -= nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - ran;
		asleep += took;
		naps += switches() > left;
		meant_long += is_long;
		long_naps += took >= LONG;
		shortly_asleep += took >= LONG ? 0 : took;
	}
	printf("%ld %ld %ld %ld %ld %ld %ld %ld\n", nanoseconds(CLOCK_MONOTONIC) - start,
	       nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - burned, asleep, naps, meant_long, long_naps, shortly_asleep,
	       switches());
	return 0;
}
