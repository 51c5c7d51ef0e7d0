/*
 * Works on spans in several threads and tells of them as OTEP 4947 says, or with ELASTIC as Elastic does. Runs
 * until it is killed; says "ready" first.
 *   spans [LIBRARY]: with LIBRARY the pointer is that of span_pointer.c in it, loaded late; without it is that
 *   of the program or of a library that it is linked with
 * With MUCH_ELSE its threads also wait for a lock that another one keeps most of the time and for one of the kernel,
 * allocate, write blocks past the page cache to a file of the current directory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../ebpf/tests/programs/times.h"

struct thread_context {
#ifdef ELASTIC
	uint16_t minor_version;
	uint8_t valid;
	uint8_t trace_present;
	uint8_t trace_flags;
	uint8_t trace_id[16];
	uint8_t span_id[8];
	uint8_t transaction_id[8];
#else
	uint8_t trace_id[16];
	uint8_t span_id[8];
	uint8_t valid;
	uint8_t trace_flags;
	uint16_t attributes_bytes;
#endif
};

#ifdef LOADS_LATE
static void (*point_to_span)(void *context);
#else
void point_to_span(void *context);
#endif

#define FENCE() __atomic_signal_fence(__ATOMIC_SEQ_CST)

enum { PIECE_NS = 3 * 1000000, PAGES = 64, PAGE = 4096 };

/* New pages each time: page faults are samples, too. */
static void touch_pages(void)
{
	char *pages = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int page = 0; page < PAGES; page++)
		((volatile char *)pages)[page * PAGE] = 1;
	munmap(pages, PAGES * PAGE);
}

#ifdef MUCH_ELSE

enum { MAPPED = 1 << 20, ALLOCATED = 1 << 20, MAPPINGS = 20 };

static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
static char block[PAGE] __attribute__((aligned(PAGE))) = { 1 };
static int file;

static void do_much_else(void)
{
	for (int i = 0; i < MAPPINGS; i++)
		munmap(mmap(0, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0),
		       MAPPED);
	pthread_mutex_lock(&shared);
	sink++;
	pthread_mutex_unlock(&shared);
	for (int i = 0; i < 4; i++) {
		char *volatile memory = malloc(ALLOCATED);

		free(memory);
	}
	/* Where there is no device behind it there are no requests. */
	sink += pwrite(file, block, PAGE, 0);
}

static void begin_much_else(void)
{
	file = open("blocks", O_RDWR | O_CREAT, 0600);
	sink += pwrite(file, block, PAGE, 0) + fsync(file) + close(file);
	file = open("blocks", O_RDWR | O_DIRECT);
}

/* Threads that only wait for each other may fall into step, so that one of them never waits. */
static void keep_lock(void)
{
	for (;;) {
		pthread_mutex_lock(&shared);
		rest(5 * 1000000);
		pthread_mutex_unlock(&shared);
		rest(1000000);
	}
}

#else

static void do_much_else(void)
{
}

static void begin_much_else(void)
{
}

static void keep_lock(void)
{
}

#endif

/* Functions of equal code would be made one. */
__attribute__((noinline)) static void serve_first(void)
{
	burn(PIECE_NS);
	rest(PIECE_NS);
	touch_pages();
	do_much_else();
	sink += 1;
}

__attribute__((noinline)) static void serve_second(void)
{
	burn(PIECE_NS);
	rest(PIECE_NS);
	touch_pages();
	do_much_else();
	sink += 2;
}

__attribute__((noinline)) static void serve_nobody(void)
{
	burn(PIECE_NS);
	rest(PIECE_NS);
	sink += 3;
}

/* Never comes back: nobody but the iterator over all threads finds it. */
__attribute__((noinline)) static void serve_forever(void)
{
	rest(1000 * 1000000000L);
	sink += 4;
}

static struct thread_context context_of(uint8_t trace, uint8_t span)
{
	struct thread_context context = { .valid = 1 };

#ifdef ELASTIC
	context.trace_present = 1;
#endif
	memset(context.trace_id, trace, sizeof(context.trace_id));
	memset(context.span_id, span, sizeof(context.span_id));
	return context;
}

/* Moves the pointer. */
static void *first_thread(void *unused)
{
	struct thread_context context = context_of(0x11, 0x1a);

	for (;;) {
		point_to_span(&context);
		serve_first();
		point_to_span(0);
		serve_nobody();
	}
	return unused;
}

/* Leaves the pointer and changes what it points to. */
static void *second_thread(void *unused)
{
	struct thread_context context = context_of(0x22, 0x2b);

	point_to_span(&context);
	for (;;) {
		context.valid = 1;
		FENCE();
		serve_second();
		FENCE();
		context.valid = 0;
		FENCE();
		serve_nobody();
	}
	return unused;
}

static void *third_thread(void *unused)
{
	struct thread_context context = context_of(0x33, 0x3c);

	point_to_span(&context);
	serve_forever();
	return unused;
}

/* Has never had anything to do with spans. */
static void *fourth_thread(void *unused)
{
	for (;;)
		serve_nobody();
	return unused;
}

int main(int argc, char **argv)
{
	void *(*works[])(void *) = { first_thread, second_thread, third_thread, fourth_thread };
	pthread_t thread;

#ifdef LOADS_LATE
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;

	if (!library || !(*(void **)&point_to_span = dlsym(library, "point_to_span")))
		return 1;
#endif
	begin_much_else();
	for (unsigned i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		if (pthread_create(&thread, 0, works[i], 0))
			return 1;
	puts("ready");
	fflush(stdout);
	keep_lock();
	pthread_join(thread, 0);
	return argc == 0 || !argv;
}
