/*
 * Causes page faults that the kernel counts. Arguments: pages, "hold".
 * With "hold" it says "ready" after a first line, writes to so many new pages in touch() after a second one,
 * says "touched" and waits for a third. Without: once a line has been written to it, a child writes to so many new pages in touch() and has the kernel write to as many in fill(); the parent
 * prints the child's process id and the faults that the kernel counted for all of its life.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096 };

static char *pages_of_their_own(long pages)
{
	char *memory = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(1);
	madvise(memory, pages * PAGE, MADV_NOHUGEPAGE);
	return memory;
}

__attribute__((noinline)) static void touch(char *memory, long pages)
{
	for (long page = 0; page < pages; page++)
		((volatile char *)memory)[page * PAGE] = 1;
}

__attribute__((noinline)) static long fill(char *memory, long pages)
{
	int zeros = open("/dev/zero", O_RDONLY);
	long bytes = read(zeros, memory, pages * PAGE);

	close(zeros);
	return bytes;
}

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	long pages = argc > 1 ? atol(argv[1]) : 1000;
	struct rusage used;
	pid_t child;
	int status;

	getchar();
	if (argc > 2) {
		say("ready");
		getchar();
		touch(pages_of_their_own(pages), pages);
		say("touched");
		return getchar() != EOF;
	}
	child = fork();
	if (child == 0) {
		touch(pages_of_their_own(pages), pages);
		_exit(fill(pages_of_their_own(pages), pages) != pages * PAGE);
	}
	if (wait4(child, &status, 0, &used) != child || status != 0)
		return 1;
	printf("%d %ld\n", child, used.ru_minflt + used.ru_majflt);
	return 0;
}
