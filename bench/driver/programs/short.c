/* Burns CPU for 200 ms in one function, whose name is given by -DNAME=…, and ends. */
#include <stdint.h>
#include <time.h>

static volatile uint64_t sink;

__attribute__((noinline)) void NAME(void) {
    for (int i = 0; i < 100000; i++)
        sink = sink * 6364136223846793005u + 1;
}

int main(void) {
    struct timespec used;
    do {
        NAME();
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    } while (used.tv_sec == 0 && used.tv_nsec < 200 * 1000 * 1000);
    return 0;
}
