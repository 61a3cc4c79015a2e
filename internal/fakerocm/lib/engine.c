/* The copy engines. A thread per device takes its queues in turn: each executes
 * some packets, or a piece of a copy. While nothing moves it sleeps, longer the
 * longer that lasts, so that idle queues cost next to nothing. */
#include "fake.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { TURN = 64, PIECE = 1 << 20 };

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    Queue *queues;
    int on[ENGINES]; /* queues of each engine */
    int made, next;
    bool running;
} Device;

static Device devices[MAX_DEVICES] = {[0 ... MAX_DEVICES - 1] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER}};

/* ---- One packet. ---- */

typedef enum { DONE, AGAIN, WAITS, WRONG } Verdict;

static bool holds(const Packet *p, uint32_t v) {
    v &= p->mask;
    switch (p->function) {
    case 0: return true;
    case 1: return v < p->reference;
    case 2: return v <= p->reference;
    case 3: return v == p->reference;
    case 4: return v != p->reference;
    case 5: return v >= p->reference;
    case 6: return v > p->reference;
    }
    return false;
}

static Verdict atomic(const Packet *p) {
    uint64_t *wide = (uint64_t *)p->addr;
    uint32_t *narrow = (uint32_t *)p->addr, expected = (uint32_t)p->compare;
    uint64_t compare = p->compare;
    switch (p->operation & 0x3f) {
    case 0x2f: __atomic_fetch_add(wide, p->value, __ATOMIC_SEQ_CST); break;
    case 0x0f: __atomic_fetch_add(narrow, (uint32_t)p->value, __ATOMIC_SEQ_CST); break;
    case 0x28:
        __atomic_compare_exchange_n(wide, &compare, p->value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        break;
    case 0x08:
        __atomic_compare_exchange_n(narrow, &expected, (uint32_t)p->value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        break;
    }
    return DONE;
}

/* word executes a packet that touches one word. */
static Verdict word(Queue *q, const Packet *p) {
    uint64_t n = p->kind == TIMESTAMP || (p->kind == ATOMIC && p->operation & 0x20) ? 8 : 4;
    if (!memory_begin(q->device, p->addr, n)) return WRONG;
    Verdict v = DONE;
    switch (p->kind) {
    case FENCE: __atomic_store_n((uint32_t *)p->addr, (uint32_t)p->value, __ATOMIC_RELEASE); break;
    case TIMESTAMP: /* the global clock has 100 MHz */
        __atomic_store_n((uint64_t *)p->addr, nanoseconds() / 10, __ATOMIC_RELEASE);
        break;
    case ATOMIC: v = atomic(p); break;
    default:
        if (!holds(p, __atomic_load_n((uint32_t *)p->addr, __ATOMIC_ACQUIRE))) v = WAITS;
    }
    memory_end();
    if (v == WAITS && p->retries != 0xfff && q->moved++ >= p->retries) return WRONG;
    return v;
}

/* copy moves a piece: whole rows, or a part of one. */
static Verdict copy(Queue *q, const Packet *p) {
    uint64_t src_span = (p->height - 1) * p->src_pitch + p->width;
    uint64_t dst_span = (p->height - 1) * p->dst_pitch + p->width;
    if (!memory_begin(q->device, p->src, src_span)) return WRONG;
    if (!memory_begin(q->device, p->dst, dst_span)) {
        memory_end();
        return WRONG;
    }
    uint64_t all = p->width * p->height, end = q->moved + PIECE < all ? q->moved + PIECE : all;
    while (q->moved < end) {
        uint64_t row = q->moved / p->width, column = q->moved % p->width, n = p->width - column;
        if (n > end - q->moved) n = end - q->moved;
        memcpy((void *)(p->dst + row * p->dst_pitch + column), (void *)(p->src + row * p->src_pitch + column), n);
        q->moved += n;
    }
    memory_end();
    memory_end();
    return end == all ? DONE : AGAIN;
}

static Verdict execute(Queue *q, const Packet *p) {
    switch (p->kind) {
    case NOP:
    case TRAP: return DONE;
    case COPY:
    case WINDOW: return copy(q, p);
    default: return word(q, p);
    }
}

/* ---- One queue. ---- */

/* stop ends the queue for good; what is told of why. */
static void stop(Queue *q, const char *what) {
    q->stopped = true;
    if (what && q->told) q->told(q, what);
}

/* take executes the queue's next packet, or a piece of it, and reports whether
 * anything moved. */
static bool take(Queue *q, const Settings *s) {
    if (q->stopped || s->dead[q->device][q->engine]) return false;
    uint64_t bell = __atomic_load_n(q->doorbell, __ATOMIC_ACQUIRE), place = q->at & (q->size - 1);
    if (bell == q->at) return false;
    if (bell - q->at > q->size || bell % 4) {
        stop(q, "a doorbell beyond the ring");
        return true;
    }
    uint64_t stall = s->stall[q->device][q->engine], error = s->error[q->device][q->engine];
    if ((stall && q->executed + 1 >= stall) || (error && q->executed + 1 >= error)) {
        stop(q, error && q->executed + 1 >= error ? "the error that was asked for" : NULL);
        return true;
    }
    Packet p;
    uint64_t left = q->size - place < bell - q->at ? q->size - place : bell - q->at;
    const char *wrong = decode(&p, q->ring + place, left);
    if (wrong) {
        stop(q, wrong);
        return true;
    }
    unsigned slow = s->slow[q->device][q->engine];
    if (slow) {
        if (!q->ready) q->ready = nanoseconds() + 1000ull * slow;
        if (nanoseconds() < q->ready) return false;
    }
    switch (execute(q, &p)) {
    case AGAIN: return true;
    case WAITS: return false;
    case WRONG: stop(q, "an address that the engine does not reach"); return true;
    case DONE: break;
    }
    log_packet(q, &p);
    COUNT(packets, 1);
    q->executed++;
    q->moved = q->ready = 0;
    q->at += p.bytes;
    __atomic_store_n(q->read, q->at, __ATOMIC_RELEASE);
    return true;
}

/* ---- One device. ---- */

/* rest waits a quarter of the time in which nothing has moved, 1 ms at most,
 * or until queues change. */
static void rest(Device *d, uint64_t since) {
    uint64_t now = nanoseconds(), pause = (now - since) / 4;
    if (pause < 5000) {
        pthread_mutex_unlock(&d->lock);
        struct timespec t = {0, 1000};
        nanosleep(&t, NULL);
        pthread_mutex_lock(&d->lock);
        return;
    }
    if (pause > 1000000) pause = 1000000;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += (long)pause;
    if (t.tv_nsec >= 1000000000) t.tv_sec++, t.tv_nsec -= 1000000000;
    pthread_cond_timedwait(&d->changed, &d->lock, &t);
}

static void *run(void *arg) {
    Device *d = arg;
    uint64_t moved = nanoseconds();
    pthread_mutex_lock(&d->lock);
    while (d->queues) {
        Settings s = settings();
        bool any = false;
        for (Queue *q = d->queues; q; q = q->next)
            for (int i = 0; i < TURN && take(q, &s); i++) any = true;
        if (!any) {
            rest(d, moved);
            continue;
        }
        moved = nanoseconds();
        pthread_mutex_unlock(&d->lock); /* who ends a queue gets his turn */
        pthread_mutex_lock(&d->lock);
    }
    d->running = false;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* choose finds an engine with room, in turn. */
static int choose(Device *d, int low, int high) {
    for (int i = 0; i < high - low; i++) {
        int e = low + d->next++ % (high - low);
        if (d->on[e] < QUEUES_PER_ENGINE) return e;
    }
    return -1;
}

int queue_start(Queue *q, int low, int high) {
    Device *d = &devices[q->device];
    Settings s = settings();
    pthread_mutex_lock(&d->lock);
    if (q->engine < 0) q->engine = choose(d, low, high);
    if (q->engine < 0 || d->on[q->engine] == QUEUES_PER_ENGINE ||
        (s.refuse[q->device] >= 0 && d->made >= s.refuse[q->device])) {
        pthread_mutex_unlock(&d->lock);
        return ENOMEM;
    }
    q->at = __atomic_load_n(q->read, __ATOMIC_ACQUIRE);
    q->next = d->queues;
    d->queues = q;
    d->on[q->engine]++;
    d->made++;
    int failed = 0;
    if (!d->running) {
        failed = pthread_create(&d->thread, NULL, run, d);
        d->running = !failed;
        if (!failed) pthread_detach(d->thread);
    }
    if (failed) {
        d->queues = q->next;
        d->on[q->engine]--;
        d->made--;
    } else {
        COUNT(queues, 1);
    }
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    return failed;
}

void queue_end(Queue *q) {
    Device *d = &devices[q->device];
    pthread_mutex_lock(&d->lock);
    Queue **at = &d->queues;
    while (*at != q) at = &(*at)->next;
    *at = q->next;
    d->on[q->engine]--;
    d->made--;
    pthread_cond_broadcast(&d->changed);
    while (!d->queues && d->running) pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
    COUNT(queues, -1);
}
