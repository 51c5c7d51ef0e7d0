/* Burns CPU in three lines of one function, about 50, 30 and 20 %, for two callers of which each has a hottest line of its own,
 * until its CPU time is over, and writes what each line took by its own clock: a processor need not give equal rounds equal time.
 * Usage: lines SECONDS FILE */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))
/* All in the line that has it, and the same instructions in each. */
#define SPIN(rounds) for (long round = 0; round < (rounds); round++) { __asm__ volatile("imul %0, %0" : "+r"(state)); }

static double taken[3];

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

NOINLINE unsigned long spend(long first, long second, long third)
{
	unsigned long state = 3;
	double begun = now();
	SPIN(first) /* the hottest line of all */
	double after_first = now();
	SPIN(second) /* the hottest line in the evening */
	double after_second = now();
	SPIN(third)
	taken[2] += now() - after_second;
	taken[1] += after_second - after_first;
	taken[0] += after_first - begun;
	return state;
}

NOINLINE unsigned long morning(long scale)
{
	return spend(50 * scale, 0, 10 * scale) + 1;
}

NOINLINE unsigned long evening(long scale)
{
	return spend(0, 30 * scale, 10 * scale) + 2;
}

int main(int count, char **arguments)
{
	double end = now() + (count > 1 ? atof(arguments[1]) : 2.0);
	unsigned long sum = 0;
	unsigned int seed = 1;
	while (now() < end) {
		/* No round is as long as the one before, so that none falls into step with the sampling clock. */
		seed = seed * 1664525u + 1013904223u;
		long scale = 30000 + (long)((seed >> 16) % 60000);
		sum += morning(scale) + evening(scale);
	}
	if (count > 2) {
		FILE *file = fopen(arguments[2], "w");
		if (!file || fprintf(file, "%f %f %f\n", taken[0], taken[1], taken[2]) < 0 || fclose(file) != 0)
			return 1;
	}
	return sum == 7;
}
