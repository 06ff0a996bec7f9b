/* Records one at a time through SQLite's own C API, for rows.py and harness.py to hold ours against:
 *
 *     sqlite_speed FILE get|put COUNT COLUMN VALUE [THREADS]
 *
 * The file, its table "records" and the keys k0 to k9999 are those that crates/store/examples/rows.rs has made, and so
 * are the settings and the statements. "get" reads COLUMN of a row by its key and copies what it reads;
 * "put" writes VALUE under a key, in a transaction of its own. Each of THREADS (1) has a connection and
 * does its share of COUNT. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlite3.h"

#define KEYS 10000

static const char *file, *what, *column, *value;
static long each;

static void check(int code, int wanted, sqlite3 *db, const char *doing) {
    if (code != wanted) {
        fprintf(stderr, "%s: %s\n", doing, sqlite3_errmsg(db));
        exit(1);
    }
}

static void *work(void *first) {
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    char text[1024], key[32], copy[4096];
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, is_put = !strcmp(what, "put");
    int is_blob = !strcmp(column, "value");

    check(sqlite3_open_v2(file, &db, flags, NULL), SQLITE_OK, db, "open");
    sqlite3_busy_timeout(db, 30000);
    check(sqlite3_exec(db, "PRAGMA synchronous = OFF; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY",
                       NULL, NULL, NULL), SQLITE_OK, db, "pragma");
    if (is_put)
        snprintf(text, sizeof text, "INSERT INTO \"records\" (\"_key\", \"%s\") VALUES (?, ?)"
                 " ON CONFLICT (\"_key\") DO UPDATE SET \"%s\" = excluded.\"%s\"", column, column, column);
    else
        snprintf(text, sizeof text, "SELECT \"%s\" FROM \"records\" WHERE \"_key\" = ?", column);
    check(sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL), SQLITE_OK, db, text);
    for (unsigned long n = (unsigned long)first; n < (unsigned long)first + each; n++) {
        int length = snprintf(key, sizeof key, "k%lu", n * 7919 % KEYS);
        sqlite3_bind_text(statement, 1, key, length, SQLITE_STATIC);
        if (is_put) {
            if (is_blob)
                sqlite3_bind_blob(statement, 2, value, strlen(value), SQLITE_STATIC);
            else
                sqlite3_bind_text(statement, 2, value, -1, SQLITE_STATIC);
            check(sqlite3_step(statement), SQLITE_DONE, db, "put");
        } else {
            check(sqlite3_step(statement), SQLITE_ROW, db, "get");
            const void *read = is_blob ? sqlite3_column_blob(statement, 0)
                                       : (const void *)sqlite3_column_text(statement, 0);
            int size = sqlite3_column_bytes(statement, 0);
            if (size <= 0 || size > (int)sizeof copy) {
                fprintf(stderr, "%d bytes under %s\n", size, key);
                exit(1);
            }
            memcpy(copy, read, size);
            __asm__ volatile("" : : "r"(copy) : "memory");
        }
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return NULL;
}

int main(int count, char **args) {
    if (count < 6) {
        fprintf(stderr, "sqlite_speed FILE get|put COUNT COLUMN VALUE [THREADS]\n");
        return 2;
    }
    int threads = count > 6 ? atoi(args[6]) : 1;
    pthread_t all[64];
    file = args[1], what = args[2], column = args[4], value = args[5];
    if (threads < 1 || threads > 64) {
        fprintf(stderr, "1 to 64 threads\n");
        return 2;
    }
    each = atol(args[3]) / threads;
    for (long n = 1; n < threads; n++)
        if (pthread_create(&all[n], NULL, work, (void *)(n * each))) return 1;
    work((void *)0);
    for (int n = 1; n < threads; n++) pthread_join(all[n], NULL);
    return 0;
}
