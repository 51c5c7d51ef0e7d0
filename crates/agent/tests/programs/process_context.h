/* Publishes an OpenTelemetry process context (OTEP 4719). Who includes it defines _GNU_SOURCE. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct process_context {
	char signature[8];
	uint32_t version;
	uint32_t payload_size;
	uint64_t published_at_ns;
	uint64_t payload;
};

/* Publishes a payload in place of the one before. Not 0 if there is no memory to do so. */
static int publish_process_context(const volatile void *payload, uint32_t size)
{
	static struct process_context *context;
	static uint64_t updates;

	if (!context) {
		int file = memfd_create("OTEL_CTX", MFD_CLOEXEC);

		if (file < 0 || ftruncate(file, sizeof(*context)))
			return 1;
		context = mmap(0, sizeof(*context), PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
		if (context == MAP_FAILED)
			return 1;
		memcpy(context->signature, "OTEL_CTX", 8);
		context->version = 2;
	}
	__atomic_store_n(&context->published_at_ns, 0, __ATOMIC_SEQ_CST);
	context->payload = (uintptr_t)payload;
	context->payload_size = size;
	__atomic_store_n(&context->published_at_ns, ++updates, __ATOMIC_SEQ_CST);
	return 0;
}
