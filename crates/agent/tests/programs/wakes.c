/*
 * A thread that waits N times for a byte in a pipe and N times for a futex, and another one that ends its waits, each
 * after some milliseconds: `wakes N`. Says "ready", begins when a line comes, says "done" and ends with the next line.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../../../ebpf/tests/programs/times.h"

#define PAUSE 8000000L

static int ends[2];
static atomic_int turn;
static int rounds;

__attribute__((noinline)) static void wait_for_byte(void)
{
	char byte;

	if (read(ends[0], &byte, 1) != 1)
		abort();
	sink++;
}

__attribute__((noinline)) static void send_byte(void)
{
	if (write(ends[1], "x", 1) != 1)
		abort();
	sink++;
}

__attribute__((noinline)) static void wait_for_turn(int last)
{
	while (atomic_load(&turn) == last)
		syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, last, 0, 0, 0);
	sink++;
}

__attribute__((noinline)) static void give_turn(void)
{
	atomic_fetch_add(&turn, 1);
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
	sink++;
}

__attribute__((noinline)) static void *waiter(void *unused)
{
	for (int round = 0; round < rounds; round++) {
		wait_for_byte();
		wait_for_turn(round);
	}
	return unused;
}

__attribute__((noinline)) static void end_waits(void)
{
	for (int round = 0; round < rounds; round++) {
		rest(PAUSE);
		send_byte();
		rest(PAUSE);
		give_turn();
	}
}

int main(int argc, char **argv)
{
	pthread_t thread;

	rounds = argc > 1 ? atoi(argv[1]) : 50;
	if (pipe(ends) || pthread_create(&thread, 0, waiter, 0))
		return 1;
	pthread_setname_np(thread, "waits");
	pthread_setname_np(pthread_self(), "wakes");
	puts("ready");
	fflush(stdout);
	getchar();
	end_waits();
	pthread_join(thread, 0);
	puts("done");
	fflush(stdout);
	getchar();
	return 0;
}
