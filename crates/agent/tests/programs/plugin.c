/* Loaded by dlopen in the middle of the run of loader.c. */
static volatile unsigned long sink;

__attribute__((noinline, noclone)) static void burn_in_plugin(long rounds)
{
	unsigned long state = sink;
	for (long round = 0; round < rounds; round++) {
		state = state * 6364136223846793005UL + 1442695040888963407UL;
		__asm__ volatile("" : "+r"(state));
	}
	sink = state;
}

void run_plugin(long rounds)
{
	burn_in_plugin(rounds);
	__asm__ volatile("" ::: "memory");
}
