/* Burns in its own code, then loads a library and burns there.
 * Usage: loader LIBRARY SECONDS */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

/* CPU time, so that a busy machine gives as many samples as an idle one. */
static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

__attribute__((noinline, noclone)) void burn_before(double end)
{
	while (now() < end)
		for (int round = 0; round < 10000; round++)
			sink = sink * 31 + round;
}

int main(int count, char **arguments)
{
	if (count < 3)
		return 2;
	double seconds = atof(arguments[2]);
	burn_before(now() + seconds / 2);
	void *library = dlopen(arguments[1], RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	void (*run)(long) = (void (*)(long))dlsym(library, "run_plugin");
	for (double end = now() + seconds / 2; now() < end;)
		run(1000000);
	return 0;
}
