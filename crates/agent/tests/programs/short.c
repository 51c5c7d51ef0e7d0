/* Burns 200 ms of its own CPU time in burn_shortly, then ends. */
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline, noclone)) void burn_shortly(void)
{
	struct timespec time;
	do {
		for (int round = 0; round < 100000; round++)
			sink = sink * 31 + round;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	} while (time.tv_sec == 0 && time.tv_nsec < 200 * 1000 * 1000);
}

int main(void)
{
	burn_shortly();
	return 0;
}
