/* Burns CPU in three functions, 50, 30 and 20 %, at recursion depth 60, until its CPU time is over.
 * Usage: shares SECONDS */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DEPTH 60
#define NOINLINE __attribute__((noinline, noclone))

static volatile unsigned long sink;

/* The same instructions for all three, so that shares of time are shares of rounds. */
#define BURN(name, rounds)                                                                         \
	NOINLINE void name(void)                                                                   \
	{                                                                                          \
		unsigned long state = sink | 1;                                                    \
		for (int round = 0; round < (rounds); round++) {                                   \
			state = state * 6364136223846793005UL + 1442695040888963407UL;             \
			__asm__ volatile("" : "+r"(state));                                        \
		}                                                                                  \
		sink = state;                                                                      \
	}

BURN(burn_fifty, 50000)
BURN(burn_thirty, 30000)
BURN(burn_twenty, 20000)

/* CPU time, so that a busy machine gives as many samples as an idle one. */
static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

NOINLINE void work(double end)
{
	while (now() < end) {
		burn_fifty();
		burn_thirty();
		burn_twenty();
	}
	__asm__ volatile("" ::: "memory");
}

NOINLINE int descend(int depth, double end)
{
	/* Odd frame sizes, so that no fixed distance between frames would do. */
	volatile char room[24 + 8 * 3];
	room[depth % sizeof room] = (char)depth;
	if (depth <= 1) {
		work(end);
		return room[depth % sizeof room];
	}
	int below = descend(depth - 1, end);
	return below + room[depth % sizeof room];
}

int main(int count, char **arguments)
{
	double seconds = count > 1 ? atof(arguments[1]) : 2.0;
	printf("%d\n", descend(DEPTH, now() + seconds) & 1);
	return 0;
}
