/* Burns inside a signal handler that interrupts a recursion: stacks lead through the signal frame. */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static volatile unsigned long sink;
static volatile double end;

/* CPU time, so that a busy machine gives as many samples as an idle one. */
static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

__attribute__((noinline, noclone)) void burn_in_handler(void)
{
	for (int round = 0; round < 3000000; round++)
		sink = sink * 31 + round;
}

static void handler(int signal)
{
	(void)signal;
	burn_in_handler();
}

__attribute__((noinline, noclone)) int descend(int depth)
{
	volatile int here = depth;
	if (depth > 1)
		return descend(depth - 1) + here;
	while (now() < end)
		sink++;
	return here;
}

int main(int count, char **arguments)
{
	struct itimerval timer = { { 0, 20000 }, { 0, 20000 } };
	end = now() + (count > 1 ? atof(arguments[1]) : 1.0);
	signal(SIGPROF, handler);
	setitimer(ITIMER_PROF, &timer, 0);
	return descend(20) == 0;
}
