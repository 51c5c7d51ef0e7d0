/* Burns CPU in three functions with known shares, 50 : 30 : 20, below a recursion of depth 60. */
#include <stdint.h>

static volatile uint64_t sink;

#define BURN(name, rounds)                                                                         \
    __attribute__((noinline)) void name(void) {                                                    \
        uint64_t state = sink;                                                                     \
        for (int i = 0; i < (rounds); i++)                                                         \
            state = state * 6364136223846793005u + 1442695040888963407u;                           \
        sink = state;                                                                              \
    }

BURN(burn_half, 50000)
BURN(burn_third, 30000)
BURN(burn_fifth, 20000)

__attribute__((noinline)) void descend(int depth) {
    volatile char frame[48];
    frame[0] = (char)depth;
    if (depth > 0) {
        descend(depth - 1);
    } else {
        burn_half();
        burn_third();
        burn_fifth();
    }
    sink += (uint64_t)frame[0];
}

int main(void) {
    for (;;)
        descend(60);
}
