/*
 * Labels the work of two threads, as polarsignals/custom-labels has it with CUSTOM_LABELS, else by attributes of the
 * OpenTelemetry thread context (OTEP 4947), whose names it publishes in its process context (OTEP 4719). One name is
 * published later than it is used: once a line has come. Runs until it is killed; says "ready" first.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../ebpf/tests/programs/times.h"

#define EXPORTED __attribute__((visibility("default")))
#define FENCE() __atomic_signal_fence(__ATOMIC_SEQ_CST)

enum { PIECE_NS = 3 * 1000000 };

static const char first_route[] = "/first";
/* Longer than what is read of a value. */
static const char second_route[] =
	"/second/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

#ifdef CUSTOM_LABELS

struct text {
	size_t length;
	const char *bytes;
};

struct label {
	struct text key, value;
};

struct label_set {
	struct label *storage;
	size_t count, capacity;
};

EXPORTED const uint32_t custom_labels_abi_version = 1;
EXPORTED _Thread_local struct label_set *volatile custom_labels_current_set;

#define TEXT(string) { sizeof(string) - 1, string }

static struct label first_labels[] = {
	{ TEXT("http_route"), TEXT(first_route) },
	/* Taken out of the set. */
	{ { 0, 0 }, TEXT("gone") },
	{ TEXT("user"), TEXT("me") },
	/* Of two the first one counts. */
	{ TEXT("user"), TEXT("another") },
};
static struct label second_labels[] = { { TEXT("http_route"), TEXT(second_route) } };
static struct label_set first = { first_labels, 4, 4 }, second = { second_labels, 1, 1 };

static void point_to(struct label_set *labels)
{
	FENCE();
	custom_labels_current_set = labels;
	FENCE();
}

static void begin_first(void)
{
	point_to(&first);
}

static void begin_second(void)
{
	point_to(&second);
}

static void end(void)
{
	point_to(0);
}

static int publish(int is_late)
{
	return is_late;
}

#else

struct thread_context {
	uint8_t trace_id[16], span_id[8], valid, trace_flags;
	uint16_t attributes_bytes;
	uint8_t attributes[256];
};

EXPORTED _Thread_local struct thread_context *volatile otel_thread_ctx_v1;

static void add(struct thread_context *context, uint8_t key, const char *value)
{
	uint8_t *end = context->attributes + context->attributes_bytes;

	end[0] = key;
	end[1] = strlen(value);
	memcpy(end + 2, value, end[1]);
	context->attributes_bytes += 2 + end[1];
}

static void begin_first(void)
{
	static struct thread_context context;

	context = (struct thread_context){ .valid = 1 };
	/* Of two the last one counts; nobody knows what 9 is. */
	add(&context, 0, "/elsewhere");
	add(&context, 9, "unknown");
	add(&context, 0, first_route);
	add(&context, 1, "me");
	FENCE();
	otel_thread_ctx_v1 = &context;
}

static void begin_second(void)
{
	static struct thread_context context;

	context = (struct thread_context){ .valid = 1 };
	add(&context, 0, second_route);
	FENCE();
	otel_thread_ctx_v1 = &context;
}

static void end(void)
{
	otel_thread_ctx_v1 = 0;
	FENCE();
}

#include "process_context.h"

/* ProcessContext{attributes[{"threadlocal.attribute_key_map": ["http_route"]}]}, then with "user", too. */
static const char early[] = "\x12\x31\x0a\x1dthreadlocal.attribute_key_map\x12\x10\x2a\x0e"
			    "\x0a\x0c\x0a\x0ahttp_route";
static const char late[] = "\x12\x39\x0a\x1dthreadlocal.attribute_key_map\x12\x18\x2a\x16"
			   "\x0a\x0c\x0a\x0ahttp_route"
			   "\x0a\x06\x0a\x04user";

static int publish(int is_late)
{
	if (is_late)
		return publish_process_context(late, sizeof(late) - 1);
	return publish_process_context(early, sizeof(early) - 1);
}

#endif

/* Functions of equal code would be made one. */
__attribute__((noinline)) static void serve_first(void)
{
	burn(PIECE_NS);
	rest(PIECE_NS);
	sink += 1;
}

__attribute__((noinline)) static void serve_second(void)
{
	burn(PIECE_NS);
	rest(PIECE_NS);
	sink += 2;
}

__attribute__((noinline)) static void serve_nobody(void)
{
	burn(PIECE_NS);
	rest(PIECE_NS);
	sink += 3;
}

static void *first_thread(void *unused)
{
	for (;;) {
		begin_first();
		serve_first();
		end();
		serve_nobody();
	}
	return unused;
}

static void *second_thread(void *unused)
{
	for (;;) {
		begin_second();
		serve_second();
		end();
		serve_nobody();
	}
	return unused;
}

int main(void)
{
	pthread_t thread;

	if (publish(0) || pthread_create(&thread, 0, first_thread, 0) || pthread_create(&thread, 0, second_thread, 0))
		return 1;
	puts("ready");
	fflush(stdout);
	getchar();
	publish(1);
	pthread_join(thread, 0);
}
