/*
 * Much at a time: `storm processes N`, `mappings N`, `threads N`, `execs N`, `bomb N`, and `known N`, which is a bomb
 * after a while. When all is over it prints the CPU time that it and its children took, nanoseconds.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

static uint64_t cpu_ns(clockid_t clock) {
    struct timespec used;
    clock_gettime(clock, &used);
    return used.tv_sec * 1000000000ull + used.tv_nsec;
}

__attribute__((noinline)) static void burn_in_storm(uint64_t nanoseconds) {
    uint64_t end = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + nanoseconds;
    while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 1000; i++)
            sink = sink * 6364136223846793005u + 1;
}

static uint64_t taken(int who) {
    struct rusage used;
    getrusage(who, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000ull +
           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000ull;
}

static void processes(char *program, int count) {
    char *arguments[] = {program, "burn", "3", 0};
    int running = 0;
    for (int i = 0; i < count; i++) {
        if (running == 8) {
            wait(0);
            running--;
        }
        pid_t child = vfork();
        if (child == 0) {
            execv(program, arguments);
            _exit(127);
        }
        if (child < 0)
            abort();
        running++;
    }
}

/* Neighbours differ in what they allow, lest the kernel joins them. */
static void mappings(int count) {
    size_t page = 4096;
    char *memory = mmap(0, count * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    for (int i = 0; i < count; i += 2)
        if (mprotect(memory + i * page, page, PROT_READ | PROT_WRITE)) {
            perror("mprotect");
            exit(3);
        }
    burn_in_storm(1000000000);
}

static void *come_and_go(void *unused) {
    struct timespec pause = {0, 20000000};
    for (int i = 0; i < 5; i++) {
        burn_in_storm(300000);
        nanosleep(&pause, 0);
    }
    return unused;
}

static void threads(int count) {
    pthread_t *all = calloc(count, sizeof(*all));
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (int i = 0; i < count; i++)
        if (pthread_create(&all[i], &small, come_and_go, 0))
            abort();
    for (int i = 0; i < count; i++)
        pthread_join(all[i], 0);
}

static void execs(char *program, int left) {
    char rest[16];
    burn_in_storm(3000000);
    if (left == 0)
        return;
    snprintf(rest, sizeof(rest), "%d", left - 1);
    execl(program, program, "execs", rest, (char *)0);
    abort();
}

/* Each process forks until so many have been. */
static void bomb(int most) {
    int *been = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t first = getpid();
    while (__sync_add_and_fetch(been, 1) < most)
        fork();
    burn_in_storm(2000000);
    while (wait(0) > 0)
        ;
    if (getpid() != first)
        _exit(0);
}

int main(int argc, char **argv) {
    int count = argc == 3 ? atoi(argv[2]) : 0;
    if (count < 0 || argc != 3)
        return 2;
    if (!strcmp(argv[1], "burn")) {
        burn_in_storm(count * 1000000ull);
        return 0;
    }
    if (!strcmp(argv[1], "processes"))
        processes(argv[0], count);
    else if (!strcmp(argv[1], "mappings"))
        mappings(count);
    else if (!strcmp(argv[1], "threads"))
        threads(count);
    else if (!strcmp(argv[1], "execs"))
        execs(argv[0], count);
    else if (!strcmp(argv[1], "bomb"))
        bomb(count);
    else if (!strcmp(argv[1], "known")) {
        burn_in_storm(400000000);
        bomb(count);
    } else
        return 2;
    while (wait(0) > 0)
        ;
    printf("%llu\n", (unsigned long long)(taken(RUSAGE_SELF) + taken(RUSAGE_CHILDREN)));
    return 0;
}
