/* libmemcached at the work of crates/memcache/examples/memcached_speed.rs, for scripts/memcached_speed.py.
 * Build: cc -O2 -o OUT memcached_speed.c -lmemcached
 * Run:   OUT WORK SOCKET OPERATIONS: prints microseconds and microseconds of CPU an operation. */
#include <libmemcached/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define KEYS 100

static char keys[KEYS][16];
static const char *names[KEYS];
static size_t lengths[KEYS];
static char value[100];

static double cpu(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void run(memcached_st *mc, const char *work, long operations) {
    memcached_return_t rc;
    for (long n = 0; n < operations; n++) {
        int k = n % KEYS;
        if (!strcmp(work, "get")) {
            size_t length;
            uint32_t flags;
            char *found = memcached_get(mc, keys[k], lengths[k], &length, &flags, &rc);
            if (!found || length != sizeof value) exit(1);
            free(found);
        } else if (!strcmp(work, "set")) {
            if (memcached_set(mc, keys[k], lengths[k], value, sizeof value, 0, 0) != MEMCACHED_SUCCESS) exit(1);
        } else if (!strcmp(work, "multiget")) {
            memcached_result_st result;
            int found = 0;
            memcached_result_create(mc, &result);
            if (memcached_mget(mc, names, lengths, KEYS) != MEMCACHED_SUCCESS) exit(1);
            while (memcached_fetch_result(mc, &result, &rc)) found++;
            memcached_result_free(&result);
            if (found != KEYS) exit(1);
        } else {
            for (int i = 0; i < KEYS; i++)
                memcached_set(mc, keys[i], lengths[i], value, sizeof value, 0, 0);
        }
    }
    if (!strcmp(work, "noblock")) memcached_flush_buffers(mc);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const char *work = argv[1];
    long operations = atol(argv[3]);
    int batch = !strcmp(work, "get") || !strcmp(work, "set") ? 1 : KEYS;
    memcached_st *mc = memcached_create(NULL);
    memcached_server_add_unix_socket(mc, argv[2]);
    memset(value, 'v', sizeof value);
    for (int i = 0; i < KEYS; i++) {
        lengths[i] = (size_t)sprintf(keys[i], "key%05d", i);
        names[i] = keys[i];
        if (memcached_set(mc, keys[i], lengths[i], value, sizeof value, 0, 0) != MEMCACHED_SUCCESS) return 1;
    }
    if (!strcmp(work, "noblock")) {
        memcached_behavior_set(mc, MEMCACHED_BEHAVIOR_NOREPLY, 1);
        memcached_behavior_set(mc, MEMCACHED_BEHAVIOR_BUFFER_REQUESTS, 1);
    }
    run(mc, work, operations / 20 + 1);
    double begin = now(), before = cpu();
    run(mc, work, operations);
    double wall = now() - begin, used = cpu() - before;
    /* What was not confirmed is confirmed: the next command is answered after all of them. */
    printf("%.4f %.4f\n", wall * 1e6 / (operations * batch), used * 1e6 / (operations * batch));
    return 0;
}
