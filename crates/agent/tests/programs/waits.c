/*
 * Waits in known ways.
 *   waits duty MILLISECONDS FILE: burns 10 ms of CPU time and sleeps 30 ms, in turns; then writes how long
 *     that took, how much time it slept, in nanoseconds, and how often
 *   waits ways: a thread for each way of waiting, until the program is killed; says "ready" first
 *   waits fault: waits for memory that nobody brings, until the program is killed; says "ready" first, or that the
 *     kernel does not let it
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../../ebpf/tests/programs/times.h"

static int ends[2];
static int sockets[2];
static int word;

__attribute__((noinline)) static void *wait_for_time(void *unused)
{
	rest(1000 * 1000000000L);
	sink++;
	return unused;
}

__attribute__((noinline)) static void *wait_for_futex(void *unused)
{
	syscall(SYS_futex, &word, FUTEX_WAIT, 0, 0, 0, 0);
	sink++;
	return unused;
}

__attribute__((noinline)) static void *wait_for_pipe(void *unused)
{
	char byte;

	sink += read(ends[0], &byte, 1);
	return unused;
}

__attribute__((noinline)) static void *wait_for_socket(void *unused)
{
	char byte;

	sink += recv(sockets[0], &byte, 1, 0);
	return unused;
}

__attribute__((noinline)) static void *wait_for_poll(void *unused)
{
	struct pollfd end = { .fd = ends[0], .events = POLLIN };

	sink += poll(&end, 1, -1);
	return unused;
}

__attribute__((noinline)) static int wait_for_memory(const volatile char *memory)
{
	int byte = *memory;

	sink++;
	return byte;
}

static int wait_for_fault(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .range.len = 4096, .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *memory = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int handler = syscall(SYS_userfaultfd, O_CLOEXEC);
	int is_there;

	range.range.start = (unsigned long)memory;
	is_there = memory != MAP_FAILED && handler >= 0 && !ioctl(handler, UFFDIO_API, &api) &&
		   !ioctl(handler, UFFDIO_REGISTER, &range);
	puts(is_there ? "ready" : "no userfaultfd");
	fflush(stdout);
	return is_there ? wait_for_memory(memory) : 1;
}

static int wait_in_all_ways(void)
{
	void *(*ways[])(void *) = { wait_for_time, wait_for_futex, wait_for_pipe, wait_for_socket, wait_for_poll };
	pthread_t thread;

	if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 1;
	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (pthread_create(&thread, 0, ways[i], 0))
			return 1;
	puts("ready");
	fflush(stdout);
	pthread_join(thread, 0);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "fault"))
		return wait_for_fault();
	if (argc < 4)
		return wait_in_all_ways();

	long duration = atol(argv[2]) * 1000000L;
	FILE *file = fopen(argv[3], "w");
	int naps = 0;
	long start = nanoseconds(CLOCK_MONOTONIC);
	long asleep = 0;

	if (!file)
		return 1;
	while (nanoseconds(CLOCK_MONOTONIC) - start < duration) {
		burn(10000000);
		asleep -= nanoseconds(CLOCK_MONOTONIC);
		rest(30000000);
		asleep += nanoseconds(CLOCK_MONOTONIC);
		naps++;
	}
	fprintf(file, "%ld %ld %d\n", nanoseconds(CLOCK_MONOTONIC) - start, asleep, naps);
	return fclose(file);
}
