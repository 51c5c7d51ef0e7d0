/*
 * Allocates known numbers of known sizes, each in a function of its own.
 *
 *   allocate many          says that it is there, and for a line allocates much, says so and waits for another
 *   allocate few PLUGIN    a little of everything: threads, realloc, alignment, a library, fork, exec
 *   allocate served PLUGIN the same for each line, until there are no more
 *   allocate maps FILE     maps a file as code, says so and waits for a line
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define OWN __attribute__((noinline))

enum { MOST = 200000 };

static void *kept[MOST];

OWN void small(int count)
{
	for (int i = 0; i < count; i++)
		kept[i] = malloc(48);
}

OWN void medium(int first, int count)
{
	for (int i = first; i < first + count; i++)
		kept[i] = calloc(10, 100);
}

OWN void large(int count)
{
	for (int i = 0; i < count; i++) {
		void *volatile block = malloc(30000);
		free(block);
	}
}

OWN void grow(int steps)
{
	char *volatile block = malloc(1000);

	for (int i = 2; i <= steps; i++)
		block = realloc(block, i * 1000);
	kept[MOST - 1] = block;
}

OWN void align(void)
{
	void *block;

	if (posix_memalign(&block, 64, 4096) == 0)
		kept[MOST - 2] = block;
	kept[MOST - 3] = aligned_alloc(64, 640);
	kept[MOST - 4] = memalign(64, 6400);
	kept[MOST - 5] = valloc(64000);
	free(kept[MOST - 3]);
}

OWN void *threaded(void *argument)
{
	void **mine = argument;

	for (int i = 0; i < 10; i++)
		mine[i] = malloc(70);
	return 0;
}

OWN void in_child(void)
{
	for (int i = 20; i < 25; i++)
		kept[i] = malloc(80);
	free(kept[20]);
}

static void threads(void)
{
	pthread_t ids[4];
	static void *blocks[4][10];

	for (int i = 0; i < 4; i++)
		pthread_create(&ids[i], 0, threaded, blocks[i]);
	for (int i = 0; i < 4; i++) {
		pthread_join(ids[i], 0);
		/* In another thread than the one that allocated it. */
		free(blocks[i][0]);
	}
}

static void forks(void)
{
	int child = fork();

	if (child == 0) {
		/* The parent still has them. */
		for (int i = 0; i < 10; i++)
			free(kept[i]);
		in_child();
		_exit(0);
	}
	waitpid(child, 0, 0);
	child = fork();
	if (child == 0) {
		in_child();
		execlp("true", "true", (char *)0);
		_exit(1);
	}
	waitpid(child, 0, 0);
}

/* Whether there was one. */
static int wait_for_line(void)
{
	char byte;

	while (read(0, &byte, 1) == 1)
		if (byte == '\n')
			return 1;
	return 0;
}

static int say(const char *line)
{
	ssize_t length = strlen(line);

	return write(1, line, length) == length;
}

static int many(void)
{
	if (!say("ready\n"))
		return 1;
	wait_for_line();
	small(150000);
	for (int i = 0; i < 150000; i++)
		if (i % 4)
			free(kept[i]);
	medium(150000, 20000);
	for (int i = 150000; i < 160000; i++)
		free(kept[i]);
	large(3000);
	if (!say("done\n"))
		return 1;
	wait_for_line();
	return 0;
}

static int few(const char *plugin)
{
	void *library;
	void (*plug)(void);

	small(20);
	free(kept[19]);
	grow(10);
	align();
	threads();
	library = dlopen(plugin, RTLD_NOW);
	if (!library)
		return 1;
	plug = (void (*)(void))dlsym(library, "plug");
	plug();
	dlclose(library);
	forks();
	return 0;
}

static int served(const char *plugin)
{
	if (!say("ready\n"))
		return 1;
	while (wait_for_line())
		if (few(plugin) || !say("done\n"))
			return 1;
	return 0;
}

static int maps(const char *path)
{
	int file = open(path, O_RDONLY);

	if (file < 0 || mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
		return 1;
	if (!say("ready\n"))
		return 1;
	wait_for_line();
	return 0;
}

int main(int count, char **arguments)
{
	if (count < 3)
		return many();
	if (!strcmp(arguments[1], "served"))
		return served(arguments[2]);
	if (!strcmp(arguments[1], "maps"))
		return maps(arguments[2]);
	return few(arguments[2]);
}
