/* Publishes an OpenTelemetry process context with service.name=checkout-published, then burns.
 * Usage: published SECONDS (of CPU time) */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct header {
	char signature[8];
	uint32_t version;
	uint32_t payload_size;
	uint64_t published_at_ns;
	uint64_t payload;
};

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
	int file = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	if (file < 0 || ftruncate(file, sizeof(struct header)))
		return 1;
	struct header *header = mmap(0, sizeof(*header), PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	if (header == MAP_FAILED)
		return 1;
	memcpy(header->signature, "OTEL_CTX", 8);
	header->version = 2;
	header->payload_size = sizeof(payload) - 1;
	header->payload = (uintptr_t)payload;
	__atomic_store_n(&header->published_at_ns, 1, __ATOMIC_RELEASE);
	struct timespec time;
	do {
		for (int round = 0; round < 100000; round++)
			sink = sink * 31 + round;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	} while (time.tv_sec + time.tv_nsec * 1e-9 < seconds);
	return 0;
}
