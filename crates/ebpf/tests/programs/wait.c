/*
 * Waits in a known way. Arguments: the way and milliseconds to go on for.
 *   duty: burns 10 ms of CPU time and sleeps 30 ms, in turns
 *   short: sleeps a tenth of a millisecond, again and again
 *   once: sleeps until the program is killed
 * The first two print how long they took, how much CPU time and how much time asleep, in
 * nanoseconds, and how often they slept.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "times.h"

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "duty";
	long duration = (argc > 2 ? atol(argv[2]) : 1000) * 1000000L;
	long start = nanoseconds(CLOCK_MONOTONIC);
	long burned = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
	long naps = 0, asleep = 0;
	int is_duty = !strcmp(way, "duty");

	if (!strcmp(way, "once"))
		rest(1000000000000L);
	while (nanoseconds(CLOCK_MONOTONIC) - start < duration) {
		if (is_duty)
			burn(10000000);
		asleep -= nanoseconds(CLOCK_MONOTONIC);
		rest(is_duty ? 30000000 : 100000);
		asleep += nanoseconds(CLOCK_MONOTONIC);
		naps++;
	}
	printf("%ld %ld %ld %ld\n", nanoseconds(CLOCK_MONOTONIC) - start, nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - burned,
	       asleep, naps);
	return 0;
}
