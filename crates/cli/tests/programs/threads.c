/* Threads that wait for known things in known functions, and one that never waits. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone, noipa))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int nobody_writes[2];
static pthread_barrier_t started;

APART void *spin(void *unused)
{
	volatile unsigned long count = 0;

	pthread_barrier_wait(&started);
	for (;;)
		count++;
	return unused;
}

APART void *wait_for_lock(void *unused)
{
	pthread_barrier_wait(&started);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

APART void *wait_for_pipe(void *unused)
{
	char byte;

	pthread_barrier_wait(&started);
	if (read(nobody_writes[0], &byte, 1) == 1)
		putchar(byte);
	return unused;
}

APART void *wait_for_poll(void *unused)
{
	struct pollfd end = { .fd = nobody_writes[0], .events = POLLIN };

	pthread_barrier_wait(&started);
	poll(&end, 1, -1);
	return unused;
}

APART void rest_for_a_day(void)
{
	struct timespec day = { .tv_sec = 86400 };

	nanosleep(&day, NULL);
}

int main(void)
{
	static const struct {
		void *(*run)(void *);
		const char *name;
	} threads[] = {
		{ spin, "spinner" },
		{ wait_for_lock, "locker" },
		{ wait_for_pipe, "reader" },
		{ wait_for_poll, "poller" },
	};
	pthread_t thread;

	if (pipe(nobody_writes) != 0)
		return 1;
	pthread_mutex_lock(&lock);
	pthread_barrier_init(&started, NULL, 5);
	for (int i = 0; i < 4; i++) {
		if (pthread_create(&thread, NULL, threads[i].run, NULL) != 0)
			return 1;
		pthread_setname_np(thread, threads[i].name);
	}
	pthread_barrier_wait(&started);
	rest_for_a_day();
	return 0;
}
