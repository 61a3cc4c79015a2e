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

/* hand_open returns an error, or 0. */
int hand_open(const char *library, int device);
int hand_stream(void **stream);
int hand_idle(void *stream);

/* For each of n chunks: wait for its gate, its copies, the write of its signal.
 * counts has how many copies each chunk has. A copy with rows is a window. The
 * time that the calls took goes to ns. */
int hand_chain(void *stream, size_t n, const uint64_t *gates, const uint64_t *signals, const size_t *counts,
               const uint64_t *dst, const uint64_t *src, const size_t *width, const size_t *rows, const size_t *pitch,
               uint32_t round, int64_t *ns);

#endif
