/* Two threads whose work changes at known times, which are printed: a line for each piece of work, with the name of the
 * thread, the function, when it began and ended (CLOCK_REALTIME), and its time on a CPU, all in nanoseconds. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define APART __attribute__((noinline, noclone, noipa))
#define MILLISECOND 1000000LL
#define PIECE (300 * MILLISECOND)

static long long start;

static long long read_clock(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000 * MILLISECOND + time.tv_nsec;
}

static long long now(void)
{
	return read_clock(CLOCK_REALTIME);
}

static long long used(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* A clock is read rarely, so that nearly all samples are of the functions that spin. */
APART long long spin(long long until)
{
	volatile unsigned long count = 0;

	do {
		for (int i = 0; i < 200000; i++)
			count++;
	} while (now() < until);
	return now();
}

APART void lift(long long until, const char *thread)
{
	long long used_before = used();
	long long begun = now();
	long long ended = spin(until);

	printf("%s lift %lld %lld %lld\n", thread, begun, ended, used() - used_before);
}

APART void carry(long long until, const char *thread)
{
	long long used_before = used();
	long long begun = now();
	long long ended = spin(until);

	printf("%s carry %lld %lld %lld\n", thread, begun, ended, used() - used_before);
}

/* Before its work: what a thread does until another one names it would be under the name of the program. */
static void name_itself(const char *name)
{
	pthread_setname_np(pthread_self(), name);
}

/* All the time, one after the other. */
APART void *porter(void *unused)
{
	name_itself("porter");
	for (int piece = 0; piece < 6; piece += 2) {
		lift(start + (piece + 1) * PIECE, "porter");
		carry(start + (piece + 2) * PIECE, "porter");
	}
	return unused;
}

/* Only in the third and in the fourth piece of time. */
APART void *helper(void *unused)
{
	long long begin = start + 2 * PIECE;
	struct timespec time = {
		.tv_sec = begin / (1000 * MILLISECOND),
		.tv_nsec = begin % (1000 * MILLISECOND),
	};

	name_itself("helper");
	clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &time, NULL);
	carry(start + 4 * PIECE, "helper");
	return unused;
}

int main(void)
{
	pthread_t threads[2];

	start = now() + 100 * MILLISECOND;
	if (pthread_create(&threads[0], NULL, porter, NULL) != 0)
		return 1;
	if (pthread_create(&threads[1], NULL, helper, NULL) != 0)
		return 1;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 0;
}
