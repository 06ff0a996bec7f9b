/* libmemcached as a client of `steelyard bench cache`: does tasks that come as lines of JSON, and
 * answers with lines of JSON; docs/cache.md says what stands in them.
 * Build: cc -O2 -o OUT libmemcached.c -lmemcached -lpthread */
#include <libmemcached/memcached.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define KEYS 6
#define STEPS 64
#define WORKERS 1024

struct step { char what; int key; };
struct bytes { char *at; size_t length; };

struct task {
    struct step steps[STEPS];
    int count;
    uint64_t operations;
    int connections, noblock, latency;
    char *servers[16];
    int server_count;
    char *keys[KEYS];
    size_t key_lengths[KEYS];
    struct bytes values[KEYS];
    int value_count;
};

struct worker {
    memcached_st *mc;
    const struct task *task;
    uint64_t share, done, hits, misses, wrong;
    uint64_t *times;
    memcached_return_t failed;
    pthread_barrier_t *ready;
};

static memcached_st *clients[WORKERS];
static int open_clients;
static char opened[4096];

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The text behind "name": in a line; its strings have no escapes in them. */
static const char *field(const char *line, const char *name) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    const char *at = strstr(line, quoted);
    return at ? at + strlen(quoted) : NULL;
}

static uint64_t number(const char *line, const char *name) {
    const char *at = field(line, name);
    return at ? strtoull(at, NULL, 10) : 0;
}

static int truth(const char *line, const char *name) {
    const char *at = field(line, name);
    return at && !strncmp(at, "true", 4);
}

static char *text(const char **at) {
    const char *begin = strchr(*at, '"') + 1, *end = strchr(begin, '"');
    *at = end + 1;
    return strndup(begin, (size_t)(end - begin));
}

static int list(const char *line, const char *name, char **out, int most) {
    const char *at = field(line, name);
    int n = 0;
    if (!at || *at != '[') return 0;
    for (at++; *at && *at != ']' && n < most;) {
        if (*at == '"') out[n++] = text(&at); else at++;
    }
    return n;
}

static struct bytes whole(const char *path) {
    struct bytes b = {NULL, 0};
    FILE *f = fopen(path, "rb");
    if (!f) return b;
    fseek(f, 0, SEEK_END);
    b.length = (size_t)ftell(f);
    rewind(f);
    b.at = malloc(b.length + 1);
    if (fread(b.at, 1, b.length, f) != b.length) b.length = 0;
    fclose(f);
    return b;
}

static void fail(const char *why) {
    printf("{\"error\":\"%s\"}\n", why);
    fflush(stdout);
}

static int parse(const char *line, struct task *t) {
    memset(t, 0, sizeof *t);
    const char *at = field(line, "script");
    if (!at) return 0;
    char *script = text(&at);
    for (char *word = strtok(script, " "); word && t->count < STEPS; word = strtok(NULL, " "))
        t->steps[t->count++] = (struct step){word[0], word[1] ? atoi(word + 1) - 1 : 0};
    free(script);
    t->operations = number(line, "operations");
    t->connections = (int)number(line, "connections");
    t->noblock = truth(line, "noblock");
    t->latency = truth(line, "latency");
    t->server_count = list(line, "servers", t->servers, 16);
    int keys = list(line, "keys", t->keys, KEYS);
    for (int k = 0; k < keys; k++) t->key_lengths[k] = strlen(t->keys[k]);
    char *files[KEYS];
    t->value_count = list(line, "values", files, KEYS);
    for (int k = 0; k < t->value_count; k++) {
        t->values[k] = whole(files[k]);
        free(files[k]);
    }
    for (int i = 0; i < t->count; i++)
        if (t->steps[i].key < 0 || t->steps[i].key >= t->value_count) return 0;
    return t->count > 0 && keys == KEYS && t->server_count > 0 && t->connections > 0 &&
           t->connections <= WORKERS;
}

static void release(struct task *t) {
    for (int i = 0; i < t->server_count; i++) free(t->servers[i]);
    for (int k = 0; k < KEYS; k++) free(t->keys[k]), free(t->values[k].at);
}

/* Connections for a task: those that are there, where they fit. */
static void connect_all(const struct task *t) {
    char wanted[sizeof opened];
    int n = snprintf(wanted, sizeof wanted, "%d", t->connections);
    for (int i = 0; i < t->server_count; i++)
        n += snprintf(wanted + n, sizeof wanted - (size_t)n, " %s", t->servers[i]);
    if (!strcmp(wanted, opened)) return;
    for (int i = 0; i < open_clients; i++) memcached_free(clients[i]);
    for (open_clients = 0; open_clients < t->connections; open_clients++) {
        memcached_st *mc = memcached_create(NULL);
        memcached_behavior_set(mc, MEMCACHED_BEHAVIOR_TCP_NODELAY, 1);
        for (int i = 0; i < t->server_count; i++) {
            char host[256];
            const char *colon = strrchr(t->servers[i], ':');
            size_t length = colon ? (size_t)(colon - t->servers[i]) : strlen(t->servers[i]);
            if (length >= sizeof host) length = sizeof host - 1;
            memcpy(host, t->servers[i], length);
            host[length] = 0;
            memcached_server_add(mc, host, colon ? (in_port_t)atoi(colon + 1) : 11211);
        }
        clients[open_clients] = mc;
    }
    strcpy(opened, wanted);
}

static void noblock(memcached_st *mc, int on) {
    memcached_behavior_set(mc, MEMCACHED_BEHAVIOR_NOREPLY, (uint64_t)on);
    memcached_behavior_set(mc, MEMCACHED_BEHAVIOR_BUFFER_REQUESTS, (uint64_t)on);
}

static memcached_return_t set(memcached_st *mc, const struct task *t, int k) {
    return memcached_set(mc, t->keys[k], t->key_lengths[k], t->values[k].at, t->values[k].length, 0, 0);
}

static int same(const struct task *t, int k, const char *value, size_t length) {
    return k < t->value_count && length == t->values[k].length && !memcmp(value, t->values[k].at, length);
}

static memcached_return_t get(struct worker *w, int k) {
    const struct task *t = w->task;
    size_t length;
    uint32_t flags;
    memcached_return_t rc;
    char *value = memcached_get(w->mc, t->keys[k], t->key_lengths[k], &length, &flags, &rc);
    if (rc == MEMCACHED_NOTFOUND) return w->misses++, MEMCACHED_SUCCESS;
    if (rc != MEMCACHED_SUCCESS) return rc;
    if (same(t, k, value, length)) w->hits++; else w->wrong++;
    free(value);
    return rc;
}

static memcached_return_t get_all(struct worker *w) {
    const struct task *t = w->task;
    memcached_result_st result;
    uint64_t found = 0;
    memcached_return_t rc =
        memcached_mget(w->mc, (const char *const *)t->keys, t->key_lengths, KEYS);
    if (rc != MEMCACHED_SUCCESS) return rc;
    memcached_result_create(w->mc, &result);
    while (memcached_fetch_result(w->mc, &result, &rc)) {
        int k = 0;
        size_t length = memcached_result_key_length(&result);
        const char *key = memcached_result_key_value(&result);
        while (k < KEYS && (length != t->key_lengths[k] || memcmp(key, t->keys[k], length))) k++;
        if (same(t, k, memcached_result_value(&result), memcached_result_length(&result))) w->hits++;
        else w->wrong++;
        found++;
    }
    memcached_result_free(&result);
    w->misses += KEYS - found;
    return rc == MEMCACHED_END || rc == MEMCACHED_NOTFOUND ? MEMCACHED_SUCCESS : rc;
}

static memcached_return_t do_step(struct worker *w, struct step s) {
    memcached_return_t rc;
    switch (s.what) {
    case 's':
        rc = set(w->mc, w->task, s.key);
        return rc == MEMCACHED_BUFFERED ? MEMCACHED_SUCCESS : rc;
    case 'g': return get(w, s.key);
    case 'd':
        rc = memcached_delete(w->mc, w->task->keys[s.key], w->task->key_lengths[s.key], 0);
        return rc == MEMCACHED_NOTFOUND ? MEMCACHED_SUCCESS : rc;
    case 'm': return get_all(w);
    default: return MEMCACHED_INVALID_ARGUMENTS;
    }
}

/* Sends what is buffered; reads of all values are answered after what was written. */
static memcached_return_t finish(struct worker *w) {
    memcached_return_t rc = memcached_flush_buffers(w->mc);
    uint64_t hits = w->hits;
    for (int k = 0; rc == MEMCACHED_SUCCESS && k < w->task->value_count; k++) rc = get(w, k);
    if (rc == MEMCACHED_SUCCESS && w->hits - hits != (uint64_t)w->task->value_count) w->wrong++;
    w->hits = hits;
    w->misses = 0;
    return rc;
}

static void work(struct worker *w) {
    const struct task *t = w->task;
    uint64_t before = now();
    for (uint64_t n = 0; n < w->share && w->failed == MEMCACHED_SUCCESS; n++) {
        w->failed = do_step(w, t->steps[n % (uint64_t)t->count]);
        if (w->failed != MEMCACHED_SUCCESS) return;
        w->done++;
        if (w->times) {
            uint64_t end = now();
            w->times[n] = end - before;
            before = end;
        }
    }
    if (t->noblock) w->failed = finish(w);
}

static void *run(void *argument) {
    struct worker *w = argument;
    pthread_barrier_wait(w->ready);
    work(w);
    return NULL;
}

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Prints times as pairs of value and count, to three digits. */
static void print_times(struct worker *workers, int n) {
    uint64_t total = 0, at = 0;
    for (int i = 0; i < n; i++) total += workers[i].done;
    uint64_t *all = malloc((total + 1) * sizeof *all);
    for (int i = 0; i < n; i++)
        for (uint64_t k = 0; k < workers[i].done; k++) {
            uint64_t v = workers[i].times[k], unit = 1;
            while (v / unit >= 1000) unit *= 10;
            all[at++] = v / unit * unit;
        }
    qsort(all, total, sizeof *all, by_size);
    printf(",\"latency\":[");
    for (uint64_t i = 0, j; i < total; i = j) {
        for (j = i; j < total && all[j] == all[i]; j++) {}
        printf("%s[%llu,%llu]", i ? "," : "", (unsigned long long)all[i], (unsigned long long)(j - i));
    }
    printf("]");
    free(all);
}

static uint64_t micro(struct timeval t) { return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_usec; }

static void answer(const struct task *t) {
    static struct worker workers[WORKERS];
    static pthread_t threads[WORKERS];
    pthread_barrier_t ready;
    struct rusage before, after;
    struct worker first = {.mc = clients[0], .task = t};
    int deletes = 0, n = t->connections, i, made = 0;
    for (i = 0; i < t->count; i++) deletes |= t->steps[i].what == 'd';
    for (i = 0; i < n; i++) noblock(clients[i], 0);
    for (int k = 0; k < t->value_count && first.failed == MEMCACHED_SUCCESS; k++)
        first.failed = do_step(&first, (struct step){deletes ? 'd' : 's', k});
    if (first.failed != MEMCACHED_SUCCESS) return fail(memcached_strerror(clients[0], first.failed));
    memset(workers, 0, sizeof workers);
    pthread_barrier_init(&ready, NULL, (unsigned)n + 1);
    for (i = 0; i < n; i++) {
        struct worker *w = &workers[i];
        *w = (struct worker){.mc = clients[i], .task = t, .ready = &ready};
        /* Connects to every server before the time begins. */
        for (int k = 0; k < t->value_count; k++) w->failed = get(w, k);
        get_all(w);
        w->hits = w->misses = w->wrong = 0;
        noblock(clients[i], t->noblock);
        w->share = t->operations / (uint64_t)n + ((uint64_t)i < t->operations % (uint64_t)n);
        if (w->failed == MEMCACHED_NOTFOUND) w->failed = MEMCACHED_SUCCESS;
        if (t->latency) w->times = calloc(w->share + 1, sizeof *w->times);
        if (w->times) memset(w->times, 1, (w->share + 1) * sizeof *w->times);
        if (n > 1 && pthread_create(&threads[i], NULL, run, w)) exit(1);
        made++;
    }
    getrusage(RUSAGE_SELF, &before);
    uint64_t begin = now();
    if (n == 1) work(&workers[0]);
    else {
        pthread_barrier_wait(&ready);
        for (i = 0; i < made; i++) pthread_join(threads[i], NULL);
    }
    uint64_t elapsed = now() - begin;
    getrusage(RUSAGE_SELF, &after);
    pthread_barrier_destroy(&ready);
    struct worker all = {0};
    uint64_t errors = 0;
    const char *why = NULL;
    for (i = 0; i < n; i++) {
        struct worker *w = &workers[i];
        all.done += w->done, all.hits += w->hits, all.misses += w->misses, all.wrong += w->wrong;
        if (w->failed != MEMCACHED_SUCCESS) errors++, why = memcached_strerror(w->mc, w->failed);
        noblock(clients[i], 0);
    }
    /* What was written is there. */
    for (i = 0; i < t->count && !errors; i++)
        if (t->steps[i].what == 's') {
            uint64_t hits = first.hits;
            get(&first, t->steps[i].key);
            all.wrong += first.hits == hits;
        }
    printf("{\"elapsed_ns\":%llu,\"user_ns\":%llu,\"system_ns\":%llu,\"waits\":%ld,\"preemptions\":%ld,"
           "\"operations\":%llu,\"hits\":%llu,\"misses\":%llu,\"wrong\":%llu,\"errors\":%llu",
           (unsigned long long)elapsed,
           (unsigned long long)(micro(after.ru_utime) - micro(before.ru_utime)) * 1000,
           (unsigned long long)(micro(after.ru_stime) - micro(before.ru_stime)) * 1000,
           after.ru_nvcsw - before.ru_nvcsw, after.ru_nivcsw - before.ru_nivcsw,
           (unsigned long long)all.done, (unsigned long long)all.hits, (unsigned long long)all.misses,
           (unsigned long long)all.wrong, (unsigned long long)errors);
    if (why) printf(",\"first\":\"%s\"", why);
    if (t->latency && !errors) print_times(workers, n);
    for (i = 0; i < n; i++) free(workers[i].times);
    printf("}\n");
    fflush(stdout);
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    struct task task;
    /* An answer is one write, however long it is, up to this. */
    setvbuf(stdout, NULL, _IOFBF, 1 << 20);
    printf("{\"cache_client\":1,\"client\":\"libmemcached\",\"version\":\"%s\","
           "\"about\":\"C, text protocol, TCP_NODELAY, its usual hash\",\"noblock\":true,"
           "\"connections\":%d}\n", memcached_lib_version(), WORKERS);
    fflush(stdout);
    while (getline(&line, &room, stdin) > 0) {
        if (parse(line, &task)) {
            connect_all(&task);
            answer(&task);
        } else fail("a task that this adapter does not understand");
        release(&task);
    }
    return 0;
}
