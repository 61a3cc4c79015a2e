/* fake.h: what the parts of the emulated ROCm share.
 *
 * The library stands in for libamdhip64, libhsa-runtime64 and the KFD device.
 * It shares no code with Sluice: values are those of AMD's public headers, the
 * packets are decoded here anew. */
#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

enum { MAX_DEVICES = 8, ENGINES = 16, XGMI_FROM = 2, QUEUES_PER_ENGINE = 8 };

/* ---- Settings: how many devices, and how they misbehave. ---- */

typedef struct {
    int devices;
    char arch[32];
    int kfd_minor;                            /* of the interface 1.x that KFD tells */
    bool no_hsa;                              /* the HSA runtime makes no SDMA queue */
    uint64_t memory;                          /* bytes of each device */
    bool dead[MAX_DEVICES][ENGINES];          /* takes doorbells, executes nothing */
    unsigned slow[MAX_DEVICES][ENGINES];      /* microseconds before each packet */
    uint64_t stall[MAX_DEVICES][ENGINES];     /* stops before packet N, counted from 1; 0 is never */
    uint64_t error[MAX_DEVICES][ENGINES];     /* reports an error before packet N */
    int refuse[MAX_DEVICES];                  /* queues it makes; -1 is any number */
    bool no_access[MAX_DEVICES][MAX_DEVICES]; /* [from][to] */
} Settings;

/* settings is a copy of what holds now. */
Settings settings(void);

/* ---- Memory. ---- */

enum { HOST = -1 };

/* memory_new returns whole pages of a device or of HOST, NULL if there are no
 * more. Device memory is not zeroed. */
void *memory_new(int device, size_t bytes);
bool memory_free(void *p, bool host);
/* memory_let says that a device may reach another's memory. */
void memory_let(int from, int to);
/* memory_begin holds [p, p+n) for use by a device until memory_end; it reports
 * false, and holds nothing, if that is no memory that the device reaches. */
bool memory_begin(int device, uint64_t p, uint64_t n);
void memory_end(void);
/* memory_whole says whether an allocation is just [p, p+n). */
bool memory_whole(uint64_t p, uint64_t n);

/* ---- Packets. ---- */

typedef enum { NOP, COPY, WINDOW, FENCE, TRAP, POLL, ATOMIC, TIMESTAMP } Kind;

typedef struct {
    Kind kind;
    uint32_t bytes; /* in the ring */
    uint64_t addr;  /* FENCE, POLL, ATOMIC, TIMESTAMP */
    uint64_t value; /* FENCE and TRAP: 32 bits; ATOMIC: the operand */
    uint64_t src, dst, src_pitch, dst_pitch, width, height; /* COPY and WINDOW */
    uint32_t function, reference, mask, interval, retries;  /* POLL */
    uint32_t operation;                                     /* ATOMIC */
    uint64_t compare;
} Packet;

/* decode reads the packet in the first left bytes at p. It returns NULL, or
 * what is wrong. */
const char *decode(Packet *to, const uint8_t *p, uint64_t left);
/* describe writes the packet on one line, without its end. */
void describe(const Packet *p, char *to, size_t room);

/* ---- Queues and the engines behind them. ---- */

typedef struct Queue Queue;
struct Queue {
    int device, engine;
    uint8_t *ring;
    uint64_t size;
    uint64_t *read, *doorbell;
    /* told of an error, from the engine's thread */
    void (*told)(Queue *, const char *what);
    void *owner;

    /* The rest is the engine's. */
    uint64_t at, executed, moved, ready;
    bool stopped;
    Queue *next;
};

/* queue_start puts the queue on its engine, which -1 lets the library choose
 * in turn from low on, high not included. It returns 0 or an errno. */
int queue_start(Queue *q, int low, int high);
/* queue_end returns when the engine does not touch the queue any more. */
void queue_end(Queue *q);

/* ---- Counts, for tests. ---- */

typedef struct {
    long allocations, queues, streams, events, modules, files;
    unsigned long packets, kernels;
} Counts;

extern Counts counts; /* every field is changed atomically */
#define COUNT(field, n) __atomic_add_fetch(&counts.field, (n), __ATOMIC_RELAXED)

/* log_packet writes a packet to the log, if there is one. */
void log_packet(const Queue *q, const Packet *p);

uint64_t nanoseconds(void);

#endif
