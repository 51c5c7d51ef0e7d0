/* Loads the shared libraries that it is given and then burns a little CPU for ever. */
#include <dlfcn.h>
#include <stdint.h>
#include <time.h>

static volatile uint64_t sink;

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        dlopen(argv[i], RTLD_LAZY | RTLD_LOCAL);
    for (;;) {
        for (int i = 0; i < 2000000; i++)
            sink = sink * 6364136223846793005u + 1;
        struct timespec pause = {0, 100 * 1000 * 1000};
        nanosleep(&pause, 0);
    }
}
