/* The SDMA 4.4 packets that an engine here takes. What it would have to guess
 * at is an error. */
#include "fake.h"

#include <stdio.h>
#include <string.h>

static uint32_t dword(const uint8_t *p, int i) {
    p += 4 * i;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t qword(const uint8_t *p, int i) { return dword(p, i) | (uint64_t)dword(p, i + 1) << 32; }

/* bits of d from low to high, both included */
static uint32_t bits(uint32_t d, int low, int high) { return d >> low & (0xffffffffu >> (31 - (high - low))); }

static const struct {
    uint32_t op, sub_op, dwords;
    Kind kind;
} table[] = {
    {1, 0, 7, COPY}, {1, 36, 20, WINDOW}, {5, 0, 4, FENCE},  {6, 0, 2, TRAP},
    {8, 0, 6, POLL}, {10, 0, 8, ATOMIC},  {13, 2, 3, TIMESTAMP},
};

static const char *copy(Packet *to, const uint8_t *p) {
    if (bits(dword(p, 0), 16, 31)) return "flags of a copy that are not emulated";
    if (dword(p, 2)) return "parameters of a copy that are not emulated";
    to->width = (uint64_t)bits(dword(p, 1), 0, 29) + 1;
    to->height = 1;
    to->src_pitch = to->dst_pitch = to->width;
    to->src = qword(p, 3);
    to->dst = qword(p, 5);
    return NULL;
}

static const char *window(Packet *to, const uint8_t *p) {
    if (bits(dword(p, 0), 16, 31)) return "flags or an element size of a window that are not emulated";
    if (dword(p, 5) || dword(p, 13) || dword(p, 19)) return "a window of several slices";
    to->src_pitch = (uint64_t)dword(p, 6) + 1;
    to->dst_pitch = (uint64_t)dword(p, 14) + 1;
    to->src = qword(p, 1) + dword(p, 3) + dword(p, 4) * to->src_pitch;
    to->dst = qword(p, 9) + dword(p, 11) + dword(p, 12) * to->dst_pitch;
    to->width = (uint64_t)dword(p, 17) + 1;
    to->height = (uint64_t)dword(p, 18) + 1;
    if (to->height > 1 && (to->src_pitch < to->width || to->dst_pitch < to->width)) return "rows that overlap";
    return NULL;
}

static const char *poll(Packet *to, const uint8_t *p) {
    uint32_t head = dword(p, 0), last = dword(p, 5);
    if (!bits(head, 31, 31)) return "a poll of a register";
    to->function = bits(head, 28, 30);
    if (to->function == 7) return "a comparison that there is not";
    to->addr = qword(p, 1);
    to->reference = dword(p, 3);
    to->mask = dword(p, 4);
    to->interval = bits(last, 0, 15);
    to->retries = bits(last, 16, 27);
    return to->addr % 4 ? "a poll of an unaligned word" : NULL;
}

static const char *atomic(Packet *to, const uint8_t *p) {
    to->operation = bits(dword(p, 0), 25, 31);
    to->addr = qword(p, 1);
    to->value = qword(p, 3);
    to->compare = qword(p, 5);
    switch (to->operation & 0x3f) {
    case 0x2f: /* add, 64 bits */
    case 0x28: /* compare and swap, 64 bits */
        return to->addr % 8 ? "an atomic on an unaligned word" : NULL;
    case 0x0f:
    case 0x08:
        return to->addr % 4 ? "an atomic on an unaligned word" : NULL;
    }
    return "an atomic operation that is not emulated";
}

const char *decode(Packet *to, const uint8_t *p, uint64_t left) {
    memset(to, 0, sizeof *to);
    if (left < 4) return "a packet that is cut off";
    uint32_t head = dword(p, 0), op = bits(head, 0, 7), sub_op = bits(head, 8, 15), dwords = 0;
    if (op == 0 && sub_op == 0) {
        to->kind = NOP;
        dwords = 1 + bits(head, 16, 29);
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].op == op && table[i].sub_op == sub_op) {
            to->kind = table[i].kind;
            dwords = table[i].dwords;
        }
    if (dwords == 0) return "a packet that is not emulated";
    to->bytes = 4 * dwords;
    if (to->bytes > left) return "a packet that is cut off";
    switch (to->kind) {
    case COPY: return copy(to, p);
    case WINDOW: return window(to, p);
    case POLL: return poll(to, p);
    case ATOMIC: return atomic(to, p);
    case FENCE:
        to->addr = qword(p, 1);
        to->value = dword(p, 3);
        return to->addr % 4 ? "a fence to an unaligned word" : NULL;
    case TRAP: to->value = dword(p, 1); return NULL;
    case TIMESTAMP: to->addr = qword(p, 1); return to->addr % 8 ? "a timestamp to an unaligned word" : NULL;
    case NOP: return NULL;
    }
    return NULL;
}

void describe(const Packet *p, char *to, size_t room) {
    typedef unsigned long long u;
    switch (p->kind) {
    case NOP: snprintf(to, room, "nop %u", p->bytes); break;
    case COPY: snprintf(to, room, "copy %llx %llx %llu", (u)p->src, (u)p->dst, (u)p->width); break;
    case WINDOW:
        snprintf(to, room, "window %llx %llu %llx %llu %llu %llu", (u)p->src, (u)p->src_pitch, (u)p->dst,
                 (u)p->dst_pitch, (u)p->width, (u)p->height);
        break;
    case FENCE: snprintf(to, room, "fence %llx %llx", (u)p->addr, (u)p->value); break;
    case TRAP: snprintf(to, room, "trap %llx", (u)p->value); break;
    case POLL:
        snprintf(to, room, "poll %llx %u %x %x %u %u", (u)p->addr, p->function, p->reference, p->mask, p->interval,
                 p->retries);
        break;
    case ATOMIC:
        snprintf(to, room, "atomic %llx %x %llx %llx", (u)p->addr, p->operation, (u)p->value, (u)p->compare);
        break;
    case TIMESTAMP: snprintf(to, room, "timestamp %llx", (u)p->addr); break;
    }
}
