/* hand.h: a triggered chain as one writes it by hand with driver calls: one
 * call for each wait, copy and write. It shares nothing with the shim of
 * package hip; benchmarks compare the two. */
#ifndef SLUICE_HAND_H
#define SLUICE_HAND_H

#include <stddef.h>
#include <stdint.h>

/* hand_start starts the driver, as a program may have done before anybody sets
 * anything. */
int hand_start(const char *library);

/* A stream of one device. */
typedef struct hand_stream hand_stream;

/* hand_open chooses the device of streams that are made after it. It returns an
 * error, or 0, as all of these do. */
int hand_open(const char *library, int device);
int hand_stream_new(hand_stream **stream);
int hand_idle(const hand_stream *stream);

/* For each of n chunks: wait for its gate, its copies, the write of its signal;
 * a gate or signal of 0 is left out. counts has how many copies each chunk has. A
 * copy with rows is a window. The time that the calls took goes to ns. */
int hand_chain(const hand_stream *stream, size_t n, const uint64_t *gates, const uint64_t *signals, const size_t *counts,
               const uint64_t *dst, const uint64_t *src, const size_t *width, const size_t *rows, const size_t *pitch,
               uint32_t round, int64_t *ns);

#endif
