/*
 * Once a line has been written to it, grows its heap by so many bytes and gives them back, so many times, as a C
 * library does whose heap is trimmed all the time. Arguments: bytes, times.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void grow(long bytes)
{
	if (sbrk(bytes) == (void *)-1)
		exit(1);
}

int main(int argc, char **argv)
{
	long bytes = argc > 1 ? atol(argv[1]) : 4096, times = argc > 2 ? atol(argv[2]) : 1;

	getchar();
	for (long i = 0; i < times; i++) {
		grow(bytes);
		grow(-bytes);
	}
	return 0;
}
