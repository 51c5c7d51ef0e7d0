/* Reports from a thread: its stack ends in the C library's thread entry. */
#include "dump.h"
#include <pthread.h>

__attribute__((noinline, noclone)) static void *body(void *argument)
{
	struct registers registers;
	CAPTURE(&registers);
	dump(&registers);
	return argument;
}

int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, body, NULL);
	pthread_join(thread, NULL);
	return 0;
}
