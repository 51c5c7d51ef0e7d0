/*
 * Burns CPU at a known depth of recursion without frame pointers. Arguments:
 * depth, milliseconds, and optionally "kernel" to burn them in system calls or
 * "fork" to burn them in a forked process, which ends with this one.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static double milliseconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

__attribute__((noinline)) static void burn(double limit, int in_kernel)
{
	char buffer[4096];
	FILE *zero = in_kernel ? fopen("/dev/zero", "r") : 0;

	while (milliseconds() < limit) {
		for (int i = 0; i < 2000; i++) {
			if (in_kernel)
				sink += read(fileno(zero), buffer, sizeof(buffer));
			else
				for (int j = 0; j < 100; j++)
					sink += i * j;
		}
	}
}

__attribute__((noinline)) static int recurse(int depth, double limit, int in_kernel)
{
	/* A frame whose size the compiler chooses, and work after the call: no tail call. */
	volatile char room[24];

	room[depth % 24] = depth;
	if (depth == 0)
		burn(limit, in_kernel);
	else
		recurse(depth - 1, limit, in_kernel);
	return room[depth % 24];
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 10;
	double limit = argc > 2 ? atof(argv[2]) : 1000;
	int in_kernel = argc > 3 && !strcmp(argv[3], "kernel");

	if (argc > 3 && !strcmp(argv[3], "fork")) {
		if (fork() > 0)
			return wait(0) < 0;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	return recurse(depth, limit, in_kernel) == 1234;
}
