/* main calls itself through everything that makes stacks hard, and reports from a signal handler. */
#include "dump.h"
#include <alloca.h>
#include <signal.h>

#define KEPT __attribute__((noinline, noclone))
/* Keeps the call before it from becoming a jump. */
#define AFTER_CALL __asm__ volatile("" ::: "memory")

static volatile int depth = 60;
static volatile int one = 1;

KEPT static void at_the_end(void)
{
	struct registers registers;
	CAPTURE(&registers);
	dump(&registers);
	AFTER_CALL;
}

KEPT static void handler(int signal)
{
	(void)signal;
	at_the_end();
	AFTER_CALL;
}

KEPT static int compare(const void *left, const void *right)
{
	raise(SIGUSR1);
	AFTER_CALL;
	return *(const int *)left - *(const int *)right;
}

KEPT static void sorts(void)
{
	int numbers[4] = { 4, 3, 2, one };
	qsort(numbers, 4, sizeof numbers[0], compare);
	AFTER_CALL;
}

/* An aligned local and alloca together need gcc's dynamic realignment (DRAP) prologue. */
KEPT static void realigned(int size)
{
	char aligned[64] __attribute__((aligned(64)));
	char *more = alloca(size);
	memset(more, one, size);
	memset(aligned, one, sizeof aligned);
	__asm__ volatile("" ::"r"(aligned), "r"(more) : "memory");
	sorts();
	__asm__ volatile("" ::"r"(aligned), "r"(more) : "memory");
}

KEPT static void with_alloca(int size)
{
	char *bytes = alloca(size);
	memset(bytes, one, size);
	__asm__ volatile("" ::"r"(bytes) : "memory");
	realigned(size * 3);
	__asm__ volatile("" ::"r"(bytes) : "memory");
}

KEPT static int recurse(int left, int a, int b)
{
	if (left == 0) {
		with_alloca(100 * one);
		AFTER_CALL;
		return one;
	}
	int below = recurse(left - 1, b, a + left);
	__asm__ volatile("" : "+r"(below), "+r"(a), "+r"(b)::"memory");
	return below + a * b;
}

int main(void)
{
	signal(SIGUSR1, handler);
	int result = recurse(depth, one, one);
	__asm__ volatile("" : "+r"(result)::"memory");
	return result;
}
