/* Publishes an OpenTelemetry process context with service.name=checkout-published, then burns.
 * Usage: published SECONDS (of CPU time) */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#include "process_context.h"

/* ProcessContext{resource{attributes[{"service.name": "checkout-published"}]}} */
static const unsigned char payload[] =
	"\x0a\x26\x0a\x24"
	"\x0a\x0cservice.name"
	"\x12\x14\x0a\x12"
	"checkout-published";

static volatile unsigned long sink;

int main(int count, char **arguments)
{
	double seconds = count > 1 ? atof(arguments[1]) : 1.0;
	if (publish_process_context(payload, sizeof(payload) - 1))
		return 1;
	struct timespec time;
	do {
		for (int round = 0; round < 100000; round++)
			sink = sink * 31 + round;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	} while (time.tv_sec + time.tv_nsec * 1e-9 < seconds);
	return 0;
}
