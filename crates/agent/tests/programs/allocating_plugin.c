/* A library that is loaded while the program runs, and unloaded again. */
#include <stdlib.h>

void *plugged[6];

__attribute__((noinline)) void plug(void)
{
	for (int i = 0; i < 6; i++)
		plugged[i] = malloc(90);
	free(plugged[0]);
}
