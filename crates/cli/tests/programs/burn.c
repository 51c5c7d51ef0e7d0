/* Burns CPU in a function that a stripped program has no name for. */
static volatile unsigned long sum;

__attribute__((noinline)) static unsigned long burn(unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds; i++)
		sum += i * i;
	return sum;
}

int main(void)
{
	for (;;)
		sum += burn(1000);
}
