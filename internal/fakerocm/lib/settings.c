/* Settings and counts: what tests tell the library, and what they ask it. */
#include "fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

Counts counts;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static Settings now;
static FILE *log_file;

static Settings defaults(void) {
    Settings s;
    memset(&s, 0, sizeof s);
    s.devices = 2;
    strcpy(s.arch, "gfx942");
    s.kfd_minor = 18;
    s.memory = 1ull << 36;
    for (int d = 0; d < MAX_DEVICES; d++) s.refuse[d] = -1;
    return s;
}

/* place reads "device:engine" or "*:engine" and what follows a second colon. */
static bool place(const char *text, int *device, int *engine, long long *rest) {
    char *end;
    *device = -1;
    if (*text == '*')
        text++;
    else
        *device = (int)strtol(text, &end, 10), text = end;
    if (*text++ != ':') return false;
    *engine = (int)strtol(text, &end, 10);
    *rest = *end == ':' ? strtoll(end + 1, &end, 10) : 0;
    return *end == 0 && *device < MAX_DEVICES && *engine >= 0 && *engine < ENGINES;
}

static bool on_engine(Settings *s, const char *key, const char *value) {
    int device, engine;
    long long rest;
    if (!place(value, &device, &engine, &rest)) return false;
    for (int d = 0; d < MAX_DEVICES; d++) {
        if (device >= 0 && d != device) continue;
        if (!strcmp(key, "dead"))
            s->dead[d][engine] = true;
        else if (!strcmp(key, "slow"))
            s->slow[d][engine] = (unsigned)rest;
        else if (!strcmp(key, "stall"))
            s->stall[d][engine] = (uint64_t)rest + 1;
        else if (!strcmp(key, "error"))
            s->error[d][engine] = (uint64_t)rest + 1;
        else
            return false;
    }
    return true;
}

static bool set(Settings *s, FILE **log, const char *key, const char *value) {
    int a, b;
    if (!strcmp(key, "devices"))
        return (s->devices = atoi(value)) >= 0 && s->devices <= MAX_DEVICES;
    if (!strcmp(key, "arch"))
        return snprintf(s->arch, sizeof s->arch, "%s", value) < (int)sizeof s->arch;
    if (!strcmp(key, "kfd_minor")) return (s->kfd_minor = atoi(value)) >= 0;
    if (!strcmp(key, "no_hsa")) return s->no_hsa = atoi(value), true;
    if (!strcmp(key, "memory")) return (s->memory = strtoull(value, NULL, 0)) > 0;
    if (!strcmp(key, "log")) return (*log = fopen(value, "w")) != NULL;
    if (!strcmp(key, "refuse")) {
        if (sscanf(value, "%d:%d", &a, &b) != 2 || a < 0 || a >= MAX_DEVICES) return false;
        s->refuse[a] = b;
        return true;
    }
    if (!strcmp(key, "no_access")) {
        if (sscanf(value, "%d:%d", &a, &b) != 2 || a < 0 || b < 0 || a >= MAX_DEVICES || b >= MAX_DEVICES) return false;
        s->no_access[a][b] = true;
        return true;
    }
    return on_engine(s, key, value);
}

/* apply reads words of the form key=value over the defaults. */
static int apply(const char *text) {
    Settings s = defaults();
    FILE *log = NULL;
    char *words = strdup(text), *rest = words, *word;
    int result = 0;
    while (!result && (word = strtok_r(rest, " ", &rest))) {
        char *value = strchr(word, '=');
        if (!value) {
            result = -1;
            break;
        }
        *value++ = 0;
        if (!set(&s, &log, word, value)) result = -1;
    }
    free(words);
    if (result) {
        if (log) fclose(log);
        return result;
    }
    pthread_mutex_lock(&lock);
    now = s;
    if (log_file) fclose(log_file);
    log_file = log;
    pthread_mutex_unlock(&lock);
    return 0;
}

static void begin(void) {
    const char *text = getenv("FAKEROCM");
    if (apply(text ? text : "")) {
        fprintf(stderr, "fakerocm: FAKEROCM=\"%s\" is not understood\n", text);
        abort();
    }
}

Settings settings(void) {
    pthread_once(&once, begin);
    pthread_mutex_lock(&lock);
    Settings s = now;
    pthread_mutex_unlock(&lock);
    return s;
}

void log_packet(const Queue *q, const Packet *p) {
    pthread_mutex_lock(&lock);
    if (log_file) {
        char text[256];
        describe(p, text, sizeof text);
        fprintf(log_file, "%llx %llu %s\n", (unsigned long long)(uintptr_t)q->ring, (unsigned long long)q->at, text);
        fflush(log_file);
    }
    pthread_mutex_unlock(&lock);
}

/* fakerocm_tell replaces all settings by the defaults and what the text says. */
API int fakerocm_tell(const char *text) {
    pthread_once(&once, begin);
    return apply(text);
}

API void fakerocm_counts(Counts *to) {
    unsigned long *from = (unsigned long *)&counts, *at = (unsigned long *)to;
    for (size_t i = 0; i < sizeof counts / sizeof *from; i++) at[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
}

uint64_t nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
