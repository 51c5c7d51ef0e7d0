/*
 * A little of everything that is recorded, each in a function of its own. Argument: a block device. Tells the process
 * that did it, and how much of each there was by its own clocks and the kernel's account: a name and a number a line.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../../ebpf/tests/programs/times.h"

#define OWN __attribute__((noinline))

enum {
	PAGE = 4096,
	MIB = 1 << 20,
	NAPS = 10,
	TURNS = 10,
	TOUCHED = 2000,
	GROWN = 32,
	REQUESTS = 16,
	BLOCKS = 4000,
	BLOCK_BYTES = 30000,
	COMPETITORS = 3,
};

static const long NAP = 30000000;
static const long SHORT_WHILE = 300000000;

static void tell(const char *name, long value)
{
	printf("%s %ld\n", name, value);
}

static void must(int is_true, const char *what)
{
	if (is_true)
		return;
	perror(what);
	exit(1);
}

OWN static void burns_here(void)
{
	burn(500000000);
	sink++;
}

OWN static void sleeps_here(void)
{
	long start = nanoseconds(CLOCK_MONOTONIC);

	for (int i = 0; i < NAPS; i++)
		rest(NAP);
	tell("slept", nanoseconds(CLOCK_MONOTONIC) - start);
}

/* === a lock of the program === */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int is_held;

static void *keep(void *unused)
{
	for (int i = 0; i < TURNS; i++) {
		pthread_mutex_lock(&mutex);
		is_held = 1;
		rest(NAP);
		pthread_mutex_unlock(&mutex);
		while (is_held)
			rest(1000000);
	}
	return unused;
}

OWN static long waits_for_lock(void)
{
	long start = nanoseconds(CLOCK_MONOTONIC);

	pthread_mutex_lock(&mutex);
	return nanoseconds(CLOCK_MONOTONIC) - start;
}

static void contend(void)
{
	pthread_t keeper;
	long waited = 0;

	must(pthread_create(&keeper, 0, keep, 0) == 0, "keeper");
	pthread_setname_np(keeper, "keeper");
	for (int i = 0; i < TURNS; i++) {
		while (!is_held)
			rest(1000000);
		waited += waits_for_lock();
		is_held = 0;
		pthread_mutex_unlock(&mutex);
	}
	pthread_join(keeper, 0);
	tell("locked", waited);
}

/* === memory === */

OWN static void touches_here(void)
{
	char *memory = mmap(0, TOUCHED * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(memory != MAP_FAILED, "mmap");
	madvise(memory, TOUCHED * PAGE, MADV_NOHUGEPAGE);
	for (long page = 0; page < TOUCHED; page++)
		((volatile char *)memory)[page * PAGE] = 1;
	tell("touched", TOUCHED);
}

OWN static void grows_here(void)
{
	for (int i = 0; i < GROWN; i++)
		must(mmap(0, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED, "mmap");
	tell("grown", (long)GROWN * MIB);
}

OWN static void allocates_here(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		void *volatile block = malloc(BLOCK_BYTES);

		free(block);
	}
	tell("allocated", (long)BLOCKS * BLOCK_BYTES);
}

/* === several threads === */

static long run_delay(void)
{
	char path[64];
	long ran, delayed = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", gettid());
	FILE *file = fopen(path, "r");
	must(file && fscanf(file, "%ld %ld", &ran, &delayed) == 2, path);
	fclose(file);
	return delayed;
}

OWN static void competes_here(void)
{
	burn(SHORT_WHILE / COMPETITORS);
	sink++;
}

static void *compete(void *unused)
{
	cpu_set_t first;
	long before;

	pthread_setname_np(pthread_self(), "competitor");
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_setaffinity(0, sizeof(first), &first);
	before = run_delay();
	competes_here();
	return (void *)(run_delay() - before);
}

/* All of them take one lock of the process for it. */
OWN static void maps_and_unmaps(void)
{
	char *memory = mmap(0, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	munmap(memory, MIB);
	sink++;
}

static void *map(void *unused)
{
	long start = nanoseconds(CLOCK_MONOTONIC);

	while (nanoseconds(CLOCK_MONOTONIC) - start < SHORT_WHILE)
		maps_and_unmaps();
	return (void *)(nanoseconds(CLOCK_MONOTONIC) - start);
}

/* The sum of what several threads of `work` return. */
static long together(void *(*work)(void *))
{
	pthread_t threads[COMPETITORS];
	long sum = 0;
	void *one;

	for (int i = 0; i < COMPETITORS; i++)
		must(pthread_create(&threads[i], 0, work, 0) == 0, "thread");
	for (int i = 0; i < COMPETITORS; i++) {
		pthread_join(threads[i], &one);
		sum += (long)one;
	}
	return sum;
}

/* === a disk === */

OWN static void writes_here(const char *device)
{
	char *block = aligned_alloc(PAGE, PAGE);
	int file = open(device, O_WRONLY | O_DIRECT);
	long start;

	must(block && file >= 0, device);
	memset(block, 1, PAGE);
	start = nanoseconds(CLOCK_MONOTONIC);
	for (int i = 0; i < REQUESTS; i++)
		must(pwrite(file, block, PAGE, (long)i * PAGE) == PAGE, device);
	tell("written", nanoseconds(CLOCK_MONOTONIC) - start);
	tell("requests", REQUESTS);
	close(file);
}

static void do_everything(const char *device)
{
	burns_here();
	sleeps_here();
	contend();
	touches_here();
	grows_here();
	allocates_here();
	tell("queued", together(compete));
	tell("mapping", together(map));
	writes_here(device);
}

int main(int count, char **arguments)
{
	struct rusage used;
	pid_t child;
	int status;

	must(count == 2, "usage: truths DEVICE");
	child = fork();
	if (child == 0) {
		do_everything(arguments[1]);
		return 0;
	}
	must(wait4(child, &status, 0, &used) == child && status == 0, "child");
	tell("process", child);
	/* Of all of its life. */
	tell("faults", used.ru_minflt + used.ru_majflt);
	return 0;
}
