/* Streams, events, modules and launches. Every stream has a thread that does
 * what it was given, in order; kernels are the host's build of kernels/src. */
#define _GNU_SOURCE
#include "fake.h"
#include "host.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef int Error;
enum { SUCCESS = 0, INVALID_VALUE = 1, INVALID_IMAGE = 200, NO_BINARY = 209, INVALID_HANDLE = 400, NOT_FOUND = 500,
       NOT_READY = 600, LAUNCH_FAILURE = 719 };

int current_device(void);

typedef struct Module Module;
typedef struct {
    char name[64];
} Function;

struct Module {
    Function *functions;
    int n;
};

typedef struct {
    int references; /* the owner's, and one for each record on its way */
    int pending;
} Event;

typedef struct Work {
    enum { KERNEL, COPY_ROWS, SET, RECORD } kind;
    char name[64];
    unsigned blocks, threads, nargs;
    unsigned long long args[32];
    char *dst;
    const char *src;
    size_t dst_pitch, src_pitch, width, height;
    int value;
    Event *event;
    struct Work *next;
} Work;

typedef struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Work *first, **last;
    int pending; /* work that has not ended */
    Error error; /* the first, which stays */
    bool ending;
    int device;
} Stream;

/* ---- Events. ---- */

static void drop_event(Event *e) {
    if (__atomic_sub_fetch(&e->references, 1, __ATOMIC_ACQ_REL) == 0) {
        free(e);
        COUNT(events, -1);
    }
}

API Error hipEventCreateWithFlags(Event **e, unsigned flags) {
    if (flags & ~7u) return INVALID_VALUE;
    *e = calloc(1, sizeof **e);
    (*e)->references = 1;
    COUNT(events, 1);
    return SUCCESS;
}

API Error hipEventDestroy(Event *e) {
    drop_event(e);
    return SUCCESS;
}

API Error hipEventQuery(Event *e) { return __atomic_load_n(&e->pending, __ATOMIC_ACQUIRE) ? NOT_READY : SUCCESS; }

/* ---- Streams. ---- */

static void copy_rows(const Work *w) {
    for (size_t row = 0; row < w->height; row++)
        memcpy(w->dst + row * w->dst_pitch, w->src + row * w->src_pitch, w->width);
}

/* set fills memory. Whole pages of zeros are given back instead: they come anew
 * when they are touched, and heaps are large. */
static void set(char *at, int value, size_t bytes) {
    enum { PAGE = 4096, LARGE = 1 << 16 };
    if (value == 0 && bytes >= LARGE) {
        size_t before = -(uintptr_t)at & (PAGE - 1), whole = (bytes - before) & ~(size_t)(PAGE - 1);
        if (madvise(at + before, whole, MADV_DONTNEED) == 0) {
            memset(at, 0, before);
            at += before + whole;
            bytes -= before + whole;
        }
    }
    memset(at, value, bytes);
}

static Error perform(const Work *w) {
    switch (w->kind) {
    case KERNEL:
        COUNT(kernels, 1);
        return sluice_host_launch(w->name, w->blocks, w->threads, w->args, w->nargs) ? LAUNCH_FAILURE : SUCCESS;
    case COPY_ROWS: copy_rows(w); break;
    case SET: set(w->dst, w->value, w->width); break;
    case RECORD:
        __atomic_sub_fetch(&w->event->pending, 1, __ATOMIC_RELEASE);
        drop_event(w->event);
    }
    return SUCCESS;
}

static void *run(void *arg) {
    Stream *s = arg;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->first && !s->ending) pthread_cond_wait(&s->changed, &s->lock);
        Work *w = s->first;
        if (!w) break;
        s->first = w->next;
        if (!s->first) s->last = &s->first;
        bool skip = s->error && w->kind != RECORD;
        pthread_mutex_unlock(&s->lock);
        Error e = skip ? SUCCESS : perform(w);
        free(w);
        pthread_mutex_lock(&s->lock);
        if (!s->error) s->error = e;
        s->pending--;
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

API Error hipStreamCreateWithFlags(Stream **to, unsigned flags) {
    if (flags > 1) return INVALID_VALUE;
    Stream *s = calloc(1, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->last = &s->first;
    s->device = current_device();
    if (pthread_create(&s->thread, NULL, run, s)) {
        free(s);
        return INVALID_VALUE;
    }
    COUNT(streams, 1);
    *to = s;
    return SUCCESS;
}

API Error hipStreamDestroy(Stream *s) {
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    free(s);
    COUNT(streams, -1);
    return SUCCESS;
}

API Error hipStreamQuery(Stream *s) {
    pthread_mutex_lock(&s->lock);
    Error e = s->error ? s->error : s->pending ? NOT_READY : SUCCESS;
    pthread_mutex_unlock(&s->lock);
    return e;
}

static Error give(Stream *s, const Work *what) {
    Work *w = malloc(sizeof *w);
    *w = *what;
    w->next = NULL;
    pthread_mutex_lock(&s->lock);
    *s->last = w;
    s->last = &w->next;
    s->pending++;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return SUCCESS;
}

API Error hipEventRecord(Event *e, Stream *s) {
    __atomic_add_fetch(&e->references, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&e->pending, 1, __ATOMIC_RELAXED);
    return give(s, &(Work){.kind = RECORD, .event = e});
}

API Error hipMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                           int kind, Stream *s) {
    if (kind < 0 || kind > 4 || (height > 1 && (dst_pitch < width || src_pitch < width))) return INVALID_VALUE;
    return give(s, &(Work){.kind = COPY_ROWS, .dst = dst, .src = src, .dst_pitch = dst_pitch, .src_pitch = src_pitch,
                           .width = width, .height = height});
}

API Error hipMemsetAsync(void *dst, int value, size_t bytes, Stream *s) {
    return give(s, &(Work){.kind = SET, .dst = dst, .value = value, .width = bytes});
}

/* ---- Modules. ---- */

/* arch_of is the processor that an AMDGPU code object is for, by the flags of
 * its ELF header (EF_AMDGPU_MACH), "" if it is none of those here. */
static const char *arch_of(const uint8_t *image) {
    if (memcmp(image, "\177ELF", 4) || image[18] != 224) return "";
    switch (image[48]) {
    case 0x3f: return "gfx90a";
    case 0x4c: return "gfx942";
    case 0x4f: return "gfx950";
    }
    return "";
}

API Error hipModuleLoadData(Module **m, const void *image) {
    const char *arch = arch_of(image);
    if (!*arch) return INVALID_IMAGE;
    if (strcmp(arch, settings().arch)) return NO_BINARY;
    *m = calloc(1, sizeof **m);
    COUNT(modules, 1);
    return SUCCESS;
}

API Error hipModuleUnload(Module *m) {
    free(m->functions);
    free(m);
    COUNT(modules, -1);
    return SUCCESS;
}

enum { MOST_FUNCTIONS = 64 };

API Error hipModuleGetFunction(Function **f, Module *m, const char *name) {
    if (!m) return INVALID_HANDLE;
    /* A launch of no threads tells whether there is such a kernel. */
    if (strlen(name) >= sizeof m->functions->name ||
        sluice_host_launch(name, 0, 0, NULL, 0) == SLUICE_HOST_UNKNOWN)
        return NOT_FOUND;
    if (!m->functions) m->functions = calloc(MOST_FUNCTIONS, sizeof *m->functions);
    for (int i = 0; i < m->n; i++)
        if (!strcmp(m->functions[i].name, name)) {
            *f = &m->functions[i];
            return SUCCESS;
        }
    if (m->n == MOST_FUNCTIONS) return INVALID_VALUE;
    *f = &m->functions[m->n++];
    strcpy((*f)->name, name);
    return SUCCESS;
}

/* MOST_THREADS is few, since each is one of the system's. */
enum { MOST_THREADS = 4 };

API Error hipFuncGetAttribute(int *value, int attribute, Function *f) {
    if (!f || attribute) return INVALID_VALUE; /* HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK is 0 */
    *value = MOST_THREADS;
    return SUCCESS;
}

/* Arguments come as HIP_LAUNCH_PARAM_BUFFER_POINTER, _SIZE and _END have it. */
API Error hipModuleLaunchKernel(Function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                unsigned bz, unsigned shared, Stream *s, void **params, void **extra) {
    if (!f || params || !extra || shared || gy != 1 || gz != 1 || by != 1 || bz != 1 || !gx || !bx || bx > MOST_THREADS)
        return INVALID_VALUE;
    if (extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] != (void *)3) return INVALID_VALUE;
    size_t bytes = *(size_t *)extra[3];
    Work w = {.kind = KERNEL, .blocks = gx, .threads = bx, .nargs = (unsigned)(bytes / 8)};
    if (bytes > sizeof w.args || bytes % 8) return INVALID_VALUE;
    memcpy(w.args, extra[1], bytes);
    strcpy(w.name, f->name);
    return give(s, &w);
}
