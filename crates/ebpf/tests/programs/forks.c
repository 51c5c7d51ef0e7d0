/*
 * Forks at each line of its input, as that says, and tells the id of the child when that has ended:
 *   fork        a child that burns CPU and ends
 *   grandchild  a child whose child does
 *   vfork       a child that does and then becomes this program again, with the argument "burn"
 *   many N      N children that end at once
 *   stay        a child that waits; its id is told before it ends
 *   go          that child burns CPU and ends
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "times.h"

#define BURNED 60000000L

__attribute__((noinline)) static void burn_in_child(void)
{
	burn(BURNED);
	sink++;
}

__attribute__((noinline)) static pid_t fork_once(void)
{
	pid_t child = fork();

	if (child == 0) {
		burn_in_child();
		_exit(0);
	}
	return child;
}

/* The same memory until the exec. */
__attribute__((noinline)) static pid_t fork_and_exec(char *program)
{
	pid_t child = vfork();

	if (child == 0) {
		burn_in_child();
		execl(program, program, "burn", (char *)0);
		_exit(127);
	}
	return child;
}

static pid_t fork_twice(void)
{
	pid_t child = fork();

	if (child == 0) {
		fork_once();
		while (wait(0) > 0)
			;
		_exit(0);
	}
	return child;
}

/* What the child that stays waits for, and its id. */
static int ends[2];
static pid_t staying;

static pid_t fork_to_stay(void)
{
	char byte;

	if (pipe(ends))
		return -1;
	staying = fork();
	if (staying == 0) {
		sink += read(ends[0], &byte, 1);
		burn_in_child();
		_exit(0);
	}
	return staying;
}

static pid_t let_go(void)
{
	return write(ends[1], "g", 1) == 1 ? staying : -1;
}

static pid_t fork_many(int count)
{
	for (int i = 0; i < count; i++) {
		if (fork() == 0)
			_exit(0);
		while (waitpid(-1, 0, WNOHANG) > 0)
			;
	}
	return 0;
}

int main(int argc, char **argv)
{
	char line[64];

	if (argc > 1) {
		burn_in_child();
		return 0;
	}
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		pid_t child;

		if (!strncmp(line, "fork", 4))
			child = fork_once();
		else if (!strncmp(line, "grandchild", 10))
			child = fork_twice();
		else if (!strncmp(line, "vfork", 5))
			child = fork_and_exec(argv[0]);
		else if (!strncmp(line, "stay", 4))
			child = fork_to_stay();
		else if (!strncmp(line, "go", 2))
			child = let_go();
		else
			child = fork_many(atoi(line + 5));
		while (strncmp(line, "stay", 4) && wait(0) > 0)
			;
		printf("%d\n", (int)child);
		fflush(stdout);
	}
	return 0;
}
