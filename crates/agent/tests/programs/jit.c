/* Burns CPU in code that it writes itself, and names in its perf map, until its CPU time is over.
 * Usage: jit SECONDS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* push %rbp; mov %rsp,%rbp; 1: dec %rdi; jnz 1b; pop %rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};

__attribute__((noinline, noclone)) void run_compiled(void (*compiled)(long))
{
	compiled(2000000);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	char path[64];
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (argc < 2 || page == MAP_FAILED)
		return 2;
	memcpy(page, code, sizeof(code));
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
		return 3;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	FILE *map = fopen(path, "w");
	if (!map)
		return 4;
	fprintf(map, "%lx %zx compiled_code\n", (unsigned long)page, sizeof(code));
	fclose(map);
	while (clock() < atof(argv[1]) * CLOCKS_PER_SEC)
		run_compiled((void (*)(long))page);
	return 0;
}
