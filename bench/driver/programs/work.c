/*
 * Work of one kind: `work KIND AMOUNT`. Prints how long it took by the clock, nanoseconds, what CPU time it took,
 * nanoseconds, and how many operations there were: calls, switches of a thread, locks taken, pages, blocks.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;
static uint64_t amount;

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static uint64_t cpu_ns(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * 1000000000ull + used.tv_nsec;
}

static uint64_t compute(void) {
    for (uint64_t i = 0; i < amount; i++)
        sink = sink * 6364136223846793005u + 1;
    return amount;
}

static uint64_t calls(void) {
    for (uint64_t i = 0; i < amount; i++)
        syscall(SYS_getppid);
    return amount;
}

static int there[2], back[2];

static void *answer(void *unused) {
    char byte;
    while (read(there[0], &byte, 1) == 1)
        if (write(back[1], &byte, 1) != 1)
            abort();
    return unused;
}

/* Two threads on one CPU that wait for each other: each byte is a switch. */
static uint64_t switches(void) {
    cpu_set_t first;
    pthread_t other;
    char byte = 0;

    CPU_ZERO(&first);
    CPU_SET(0, &first);
    if (sched_setaffinity(0, sizeof(first), &first) || pipe(there) || pipe(back) ||
        pthread_create(&other, 0, answer, 0))
        abort();
    for (uint64_t i = 0; i < amount; i++)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            abort();
    close(there[1]);
    pthread_join(other, 0);
    return 2 * amount;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *contend(void *unused) {
    for (uint64_t i = 0; i < amount; i++) {
        pthread_mutex_lock(&mutex);
        for (int spin = 0; spin < 300; spin++)
            sink = sink * 6364136223846793005u + 1;
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static uint64_t locks(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], 0, contend, 0))
            abort();
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    return 4 * amount;
}

static uint64_t faults(void) {
    const size_t pages = 1024, size = pages * 4096;
    for (uint64_t i = 0; i < amount; i++) {
        char *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED || madvise(memory, size, MADV_NOHUGEPAGE))
            abort();
        for (size_t page = 0; page < pages; page++)
            memory[page * 4096] = 1;
        munmap(memory, size);
    }
    return pages * amount;
}

/* Blocks of 16 bytes to 8 KiB, small ones more often, a thousand of them alive, and one of 256 KiB now and then. */
static uint64_t allocations(void) {
    static void *live[1024];
    uint64_t random = 88172645463325252ull;
    for (uint64_t i = 0; i < amount; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        void **place = &live[random % 1024];
        size_t size = (random >> 20) % 1024 == 0 ? 256 << 10 : 16u << ((random >> 32) % 10 * ((random >> 40) % 10) / 9);
        free(*place);
        *place = malloc(size);
        if (!*place)
            abort();
        memset(*place, 1, size < 64 ? size : 64);
    }
    return amount;
}

static const struct {
    const char *name;
    uint64_t (*run)(void);
} kinds[] = {
    {"compute", compute}, {"calls", calls},   {"switches", switches},
    {"locks", locks},     {"faults", faults}, {"allocations", allocations},
};

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    amount = strtoull(argv[2], 0, 10);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (strcmp(argv[1], kinds[i].name))
            continue;
        uint64_t begun = now_ns(), used = cpu_ns();
        uint64_t operations = kinds[i].run();
        printf("%llu %llu %llu\n", (unsigned long long)(now_ns() - begun), (unsigned long long)(cpu_ns() - used),
               (unsigned long long)operations);
        return 0;
    }
    return 2;
}
