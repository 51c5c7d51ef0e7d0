/*
 * Makes as many executable mappings as the first argument says, prints a line,
 * waits for a byte on standard input and makes one more. It stays on one CPU, so
 * that the last mapping is written where the others were.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static void map_once(void)
{
	void *memory = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(1);
	munmap(memory, 4096);
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	if (sched_setaffinity(0, sizeof(here), &here))
		return 1;
	for (int i = 0; i < count; i++)
		map_once();
	puts("done");
	fflush(stdout);
	getchar();
	map_once();
	return 0;
}
