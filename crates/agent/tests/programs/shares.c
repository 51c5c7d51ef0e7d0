/* Burns CPU in three functions, 50, 30 and 20 %, at recursion depth 60, until its CPU time is over.
 * Usage: shares SECONDS */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DEPTH 60
#define NOINLINE __attribute__((noinline, noclone))

static volatile unsigned long sink;

/* Visits of nearly the same length, so that no compiler takes the three for one. work() decides who is visited. */
#define BURN(name, rounds)                                                                         \
	NOINLINE void name(int scale)                                                                 \
	{                                                                                          \
		unsigned long state = sink | 1;                                                    \
		for (int round = 0; round < (rounds) * scale; round++) {                                   \
			state = state * 6364136223846793005UL + 1442695040888963407UL;             \
			__asm__ volatile("" : "+r"(state));                                        \
		}                                                                                  \
		sink = state;                                                                      \
	}

BURN(burn_fifty, 333)
BURN(burn_thirty, 332)
BURN(burn_twenty, 331)

/* CPU time, so that a busy machine gives as many samples as an idle one. */
static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

static struct {
	void (*burn)(int scale);
	double share;
	double seconds;
} functions[] = {{burn_fifty, 0.5, 0}, {burn_thirty, 0.3, 0}, {burn_twenty, 0.2, 0}};

NOINLINE void work(double end)
{
	unsigned int seed = 1;
	double begun = now();
	while (begun < end) {
		/* Shares are of CPU time, not of rounds: the processor's speed changes. */
		int next = 0;
		for (int other = 1; other < 3; other++)
			if (functions[other].seconds / functions[other].share < functions[next].seconds / functions[next].share)
				next = other;
		/* No visit is as long as the one before: a fixed length would fall into step with the
		 * sampling clock, and the shares of samples would be those of a phase. A visit to a
		 * function outlasts several samples, so chance takes little from the shares. */
		seed = seed * 1664525u + 1013904223u;
		functions[next].burn(6000 + (int)((seed >> 16) % 12000));
		double ended = now();
		functions[next].seconds += ended - begun;
		begun = ended;
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
