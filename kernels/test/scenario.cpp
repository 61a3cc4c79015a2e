#include "scenario.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>

namespace scenario {

static word lane(word seed, word k) {
    word x = k * 0x9E3779B97F4A7C15ull + seed * 0xBF58476D1CE4E5B9ull;
    x ^= x >> 29;
    x *= 0x94D049BB133111EBull;
    return x ^ (x >> 32);
}

static word seed_of(word base, word rank, word round) {
    return base + (rank + 1) * 0x100000001B3ull + round * 0x9E3779B1ull;
}

// An Array is words, or other plain values, in a backend's memory.
template <class T> class Array {
  public:
    Array(Backend &on, const std::vector<T> &values) : on(on), size(values.size()), at(on.alloc(bytes() + 1)) {
        on.write(at, values.data(), bytes());
    }
    operator word() const { return at; }
    std::vector<T> values() const {
        std::vector<T> v(size);
        on.read(v.data(), at, bytes());
        return v;
    }
    T operator[](std::size_t i) const { return values()[i]; }

  private:
    Backend &on;
    std::size_t size;
    word at;
    std::size_t bytes() const { return size * sizeof(T); }
};

typedef Array<word> Words;

static std::vector<word> zeros(std::size_t n) { return std::vector<word>(n, 0); }

// expect counts what is not as it must be.
static unsigned long expect(const char *what, word got, word want) {
    if (got == want) return 0;
    std::fprintf(stderr, "%s: got %llu, want %llu\n", what, got, want);
    return 1;
}

static unsigned long run(Backend &on, const char *kernel, unsigned blocks, unsigned threads,
                         const std::vector<word> &args) {
    std::unique_ptr<Run> launch(on.launch(kernel, blocks, threads, args));
    return expect(kernel, launch->wait(), 0);
}

World::World(Backend &on, std::size_t buffer, const std::vector<word> &counts, const std::vector<word> &writers,
             word first_round)
    : regions(writers.size()), on(on) {
    word all = writers.size(), first = 0, tables = on.alloc(8 * counts.size());
    for (word rank = 0; rank < counts.size(); rank++) {
        Rank r = {on.alloc(buffer), on.alloc(all * sizeof(sluice_gate_row)),
                  on.alloc(sizeof(sluice_handle) + all * sizeof(sluice_chunk)), on.alloc(sizeof(sluice_fault_row))};
        sluice_handle h = {SLUICE_ABI_VERSION, all,   rank,         first_round, r.gates, counts.size(),
                           first,              counts[rank], tables, r.faults,    0};
        on.write(r.handle, &h, sizeof h);
        on.write(tables + 8 * rank, &r.gates, 8);
        owner.insert(owner.end(), counts[rank], rank);
        first += counts[rank];
        ranks.push_back(r);
    }
    for (unsigned rank = 0; rank < ranks.size(); rank++)
        for (word c = 0; c < all; c++) {
            sluice_chunk chunk = {writers[c], owner[c]};
            on.write(ranks[rank].handle + sizeof(sluice_handle) + c * sizeof chunk, &chunk, sizeof chunk);
            set_gates(rank, c, sluice_gate_row{first_round - 1, first_round - 1, (first_round - 1) * writers[c], {}});
        }
}

void World::round(word r) {
    for (Rank &rank : ranks) on.write(rank.handle + offsetof(sluice_handle, round), &r, sizeof r);
}

void World::carry(unsigned from, word r) {
    for (word c = 0; c < owner.size(); c++) {
        if (owner[c] != from) continue;
        word row = c * sizeof(sluice_gate_row);
        while (on.gate(ranks[from].gates + row + offsetof(sluice_gate_row, ready)) < (unsigned)r) continue;
        for (unsigned to = 0; to < ranks.size(); to++) {
            if (to == from) continue;
            for (const Region &region : regions[c])
                on.copy(ranks[to].buffer + region.offset, ranks[from].buffer + region.offset, region.width,
                        region.height, region.pitch);
            on.signal(ranks[to].gates + row + offsetof(sluice_gate_row, arrival), r);
        }
    }
}

sluice_gate_row World::gates(unsigned rank, word chunk) {
    sluice_gate_row row;
    on.read(&row, ranks[rank].gates + chunk * sizeof row, sizeof row);
    return row;
}

void World::set_gates(unsigned rank, word chunk, const sluice_gate_row &row) {
    on.write(ranks[rank].gates + chunk * sizeof row, &row, sizeof row);
}

sluice_fault_row World::faults(unsigned rank) {
    sluice_fault_row row;
    on.read(&row, ranks[rank].faults, sizeof row);
    return row;
}

// table is what the consumer kernel reads.
static Words table(Backend &on, const World &w) {
    std::vector<word> prefix(1, 0), flat;
    for (const std::vector<Region> &chunk : w.regions) {
        for (const Region &r : chunk) flat.insert(flat.end(), {r.offset, r.width, r.height, r.pitch});
        prefix.push_back(flat.size() / 4);
    }
    prefix.insert(prefix.end(), flat.begin(), flat.end());
    return Words(on, prefix);
}

// gather: two ranks produce tiles while their chunks are carried and the other
// rank consumes them, round after round with new data. Rounds pass 2^32 / 2.
unsigned long gather(Backend &on, unsigned rounds, unsigned ctas, unsigned threads) {
    const word ROWS = 37, ROW = 203, TILE_ROWS = 8, TILE = 64, PER_CHUNK = 3, GROUP = 2, BASE = 77;
    const word tiles_m = sluice::tiles(ROWS, TILE_ROWS), tiles_n = sluice::tiles(ROW, TILE);
    const word chunks = sluice::tiles(tiles_m * tiles_n, PER_CHUNK), pitch = 256, half = ROWS * pitch;
    std::vector<word> writers(2 * chunks, PER_CHUNK);
    writers[chunks - 1] = writers[2 * chunks - 1] = tiles_m * tiles_n - PER_CHUNK * (chunks - 1);
    const word first = 0x7FFFFFFE;
    World w(on, 2 * half, {chunks, chunks}, writers, first);
    for (word rank = 0; rank < 2; rank++)
        for (word step = 0; step < tiles_m * tiles_n; step++) {
            word tile = sluice::tile_of(step, tiles_m, tiles_n, GROUP);
            word top = tile / tiles_n * TILE_ROWS, left = tile % tiles_n * TILE;
            Region r = {rank * half + top * pitch + left, TILE, TILE_ROWS, pitch};
            if (r.width > ROW - left) r.width = ROW - left;
            if (r.height > ROWS - top) r.height = ROWS - top;
            w.regions[rank * chunks + step / PER_CHUNK].push_back(r);
        }
    Words regions = table(on, w), errors(on, zeros(16));
    for (word r = first; r < first + rounds; r++) {
        w.round(r);
        std::vector<std::unique_ptr<Run>> runs;
        for (word rank = 0; rank < 2; rank++) {
            World::Rank &me = w.ranks[rank];
            runs.emplace_back(on.launch("consumer", ctas, threads,
                                        {me.handle, me.buffer, regions, BASE, errors + 64 * rank}));
            runs.emplace_back(on.launch("tiled", ctas, threads,
                                        {me.handle, me.buffer, rank * half, ROWS, ROW, pitch, TILE_ROWS, TILE,
                                         PER_CHUNK, GROUP, BASE}));
        }
        w.carry(0, r);
        w.carry(1, r);
        for (std::unique_ptr<Run> &run : runs)
            if (unsigned long bad = expect("gather", run->wait(), 0)) return bad;
    }
    unsigned long bad = 0;
    for (word rank = 0; rank < 2; rank++) {
        bad += expect("gather: wrong bytes", errors[8 * rank], 0);
        bad += expect("gather: chunks checked", errors[8 * rank + 2], 2 * chunks * rounds);
        bad += expect("gather: extra marks", w.faults(rank).extra, 0);
    }
    return bad;
}

// windows: fill writes odd windows, all of them and nothing else, and the
// consumer finds a byte that is wrong.
unsigned long windows(Backend &on) {
    const std::vector<Region> shapes = {{0, 1, 1, 1},      {3, 5, 1, 5},     {8, 64, 4, 64},  {13, 200, 7, 333},
                                        {16, 24, 9, 1000}, {5, 4096, 1, 0},  {7, 3, 50, 11},  {1, 0, 4, 8}};
    unsigned long bad = 0;
    word base = 1000;
    for (const Region &r : shapes) {
        const std::size_t size = 16384;
        World w(on, size, {1}, {3}, 1);
        World::Rank &me = w.ranks[0];
        std::vector<unsigned char> want(size, 0xEE);
        on.write(me.buffer, want.data(), size);
        word seed = seed_of(++base, 0, 1);
        for (word row = 0; row < r.height; row++)
            for (word at = r.offset + row * r.pitch; at < r.offset + row * r.pitch + r.width; at++)
                want[at] = (unsigned char)(lane(seed, at / 8) >> 8 * (at % 8));
        bad += run(on, "fill", 3, 32, {me.handle, me.buffer, r.offset, r.width, r.height, r.pitch, base, 0});
        std::vector<unsigned char> got(size);
        on.read(got.data(), me.buffer, size);
        bad += expect("windows: as expected", got == want, true);
        bad += expect("windows: ready", w.gates(0, 0).ready, 1);
        w.regions[0].push_back(r);
        word wrong = 0;
        if (r.width) { // the first and the last byte
            word last = r.offset + (r.height - 1) * r.pitch + r.width - 1;
            got[r.offset] ^= 1;
            if (last != r.offset) got[last] ^= 128;
            wrong = last != r.offset ? 2 : 1;
            on.write(me.buffer, got.data(), size);
        }
        Words regions = table(on, w), errors(on, zeros(8));
        bad += run(on, "consumer", 2, 32, {me.handle, me.buffer, regions, base, errors});
        bad += expect("windows: wrong bytes found", errors[0], wrong);
        bad += expect("windows: chunk named", errors[1], wrong ? 1 : 0);
        bad += expect("windows: chunks checked", errors[2], 1);
    }
    return bad;
}

// A List is a CTA's operations for the script kernel.
typedef std::vector<std::vector<word>> List;

static Words program(Backend &on, const std::vector<List> &lists) {
    std::vector<word> all(1 + lists.size());
    all[0] = lists.size();
    for (std::size_t b = 0; b < lists.size(); b++) {
        all[1 + b] = all.size();
        for (std::vector<word> op : lists[b]) {
            op.resize(8);
            all.insert(all.end(), op.begin(), op.end());
        }
        all.insert(all.end(), 8, 0);
    }
    return Words(on, all);
}

enum { END, FILL, MARK, WAIT, DELAY, SPIN, CHECK, AWAIT, STORE };

// scripts: one CTA hands data to another through a word, and to itself through
// a gate.
unsigned long scripts(Backend &on) {
    unsigned long bad = 0;
    for (word n = 1; n <= 5; n++) {
        World w(on, 8192, {1}, {1}, n);
        World::Rank &me = w.ranks[0];
        word buffer = me.buffer, seed = 5 * n;
        Words flag(on, {0}), errors(on, zeros(8));
        List gives = {{DELAY, 2000}, {FILL, buffer, 11, 500, 3, 700, seed}, {STORE, flag, n},
                      {SPIN, 100}, {FILL, buffer, 4096, 4000, 1, 4000, seed}, {MARK, 0}};
        List takes = {{AWAIT, flag, n}, {CHECK, buffer, 11, 500, 3, 700, seed, errors},
                      {WAIT, 0},        {CHECK, buffer, 4096, 4000, 1, 4000, seed, errors},
                      {CHECK, buffer, 4096, 4000, 1, 4000, seed + 1, errors}};
        bad += run(on, "script", 3, 32, {me.handle, program(on, {gives, takes})});
        word differ = 0;
        for (word at = 4096; at < 8096; at++) {
            unsigned shift = 8 * (at % 8);
            differ += (unsigned char)(lane(seed, at / 8) >> shift) != (unsigned char)(lane(seed + 1, at / 8) >> shift);
        }
        bad += expect("scripts: wrong bytes", errors[0], differ);
        bad += expect("scripts: checks", errors[2], 3);
        bad += expect("scripts: word", flag[0], n);
    }
    return bad;
}

// faults: marks that are foreign, that name no chunk or are too many open
// nothing and are counted.
unsigned long faults(Backend &on) {
    World w(on, 64, {2, 1}, {2, 1, 1}, 6);
    World::Rank &me = w.ranks[0];
    List marks = {{MARK, 0}, {MARK, 2}, {MARK, 9}, {MARK, ~0ull}, {MARK, 1}, {MARK, 1}, {MARK, 1}, {WAIT, 77}};
    unsigned long bad = run(on, "script", 1, 64, {me.handle, program(on, {marks})});
    bad += expect("faults: foreign", w.faults(0).foreign, 4);
    bad += expect("faults: last", w.faults(0).last, 77);
    bad += expect("faults: extra", w.faults(0).extra, 2);
    bad += expect("faults: half marked", w.gates(0, 0).ready, 5);
    bad += expect("faults: half marked, writers", w.gates(0, 0).writers, 11);
    bad += expect("faults: marked", w.gates(0, 1).ready, 6);
    bad += expect("faults: marked, writers", w.gates(0, 1).writers, 8);
    bad += expect("faults: another rank's gate", w.gates(0, 2).writers + w.gates(0, 2).ready, 10);
    return bad;
}

// progress: tells what is missing while anything is, and stops when nothing is.
unsigned long progress(Backend &on) {
    World w(on, 64, {1, 1, 1}, {4, 1, 1}, 3);
    World::Rank &me = w.ranks[0];
    Words out(on, zeros(8 + 4 * 3));
    w.set_gates(0, 0, sluice_gate_row{2, 0, 11, {}});
    w.set_gates(0, 1, sluice_gate_row{0, 3, 0, {}});
    unsigned long bad = run(on, "progress", 1, 32, {me.handle, out, 5});
    bad += expect("progress: short", out[0], 2);
    bad += expect("progress: looks", out[1], 5);
    bad += expect("progress: writers", out[8 + 2], 11);
    bad += expect("progress: arrived", out[12 + 1], 3);
    bad += expect("progress: not arrived", out[16 + 1], 2);
    w.set_gates(0, 0, sluice_gate_row{3, 0, 12, {}});
    w.set_gates(0, 2, sluice_gate_row{0, 3, 0, {}});
    w.set_gates(1, 0, sluice_gate_row{0, 3, 0, {}});
    bad += run(on, "progress", 1, 32, {me.handle, out, 1});
    bad += expect("progress: one peer is missing", out[0], 1);
    bad += expect("progress: least arrival", out[8 + 3], 2);
    w.set_gates(2, 0, sluice_gate_row{0, 3, 0, {}});
    bad += run(on, "progress", 1, 32, {me.handle, out, 100});
    bad += expect("progress: nothing is short", out[0], 0);
    bad += expect("progress: looks when done", out[1], 1);
    return bad;
}

// looks: arrived gives every thread of the CTA the same answer.
unsigned long looks(Backend &on) {
    const unsigned THREADS = 64;
    World w(on, 64, {1, 1}, {1, 1}, 9);
    World::Rank &me = w.ranks[0];
    Words from(on, {4711}), out(on, std::vector<word>(3 * THREADS, 7));
    unsigned long bad = 0;
    for (word here = 0; here < 2; here++) {
        w.set_gates(0, 1, sluice_gate_row{0, 8 + here, 0, {}});
        bad += run(on, "peek", 1, THREADS, {me.handle, 1, 4, from, out});
        std::vector<word> seen = out.values();
        for (unsigned t = 0; t < THREADS; t++) {
            bad += expect("looks: here", seen[3 * t], here);
            bad += expect("looks: made", seen[3 * t + 1], here ? 1 : 4);
            bad += expect("looks: word", seen[3 * t + 2], here ? 4711 : 0);
        }
    }
    return bad;
}

// orders: the evaluator gives the mapping that the module uses.
unsigned long orders(Backend &on) {
    unsigned long bad = 0;
    for (word m = 1; m <= 7; m += 2)
        for (word n = 1; n <= 6; n++)
            for (word group = 1; group <= 9; group += 4) {
                Words out(on, std::vector<word>(m * n, ~0ull));
                bad += run(on, "evaluate", 2, 32, {out, m * n, m, n, group});
                std::vector<word> order = out.values();
                for (word step = 0; step < m * n; step++)
                    bad += expect("orders: tile", order[step], sluice::tile_of(step, m, n, group));
            }
    Words out(on, zeros(6));
    const word snake[6] = {0, 1, 2, 5, 4, 3};
    bad += run(on, "snake_order", 1, 32, {out, 6, 2, 3, 0});
    for (word step = 0; step < 6; step++) bad += expect("orders: the module's own", out[step], snake[step]);
    return bad;
}

static unsigned short bfloat(double v) {
    float f = (float)v;
    unsigned bits;
    std::memcpy(&bits, &f, 4);
    return (unsigned short)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static double real(unsigned short b) {
    unsigned bits = (unsigned)b << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
}

static unsigned long one_product(Backend &on, unsigned threads, word m, word n, word k, word pad, std::mt19937 &random) {
    const word tiles_all = sluice::tiles(m, 128) * sluice::tiles(n, 128), pitch = 2 * (n + pad), offset = 64;
    const word CANARY = 0xABCD;
    World w(on, offset + m * pitch, std::vector<word>(1, tiles_all), std::vector<word>(tiles_all, 1), 1);
    World::Rank &me = w.ranks[0];
    std::normal_distribution<double> normal;
    std::vector<unsigned short> a(m * k), b(k * n), out((offset + m * pitch) / 2, CANARY);
    for (unsigned short &x : a) x = bfloat(normal(random));
    for (unsigned short &x : b) x = bfloat(normal(random));
    on.write(me.buffer, out.data(), 2 * out.size());
    unsigned long bad = run(on, "matmul", 3, threads,
                            {me.handle, me.buffer, offset, pitch, Array<unsigned short>(on, a),
                             Array<unsigned short>(on, b), m, n, k, 1, 2});
    on.read(out.data(), me.buffer, 2 * out.size());
    out.erase(out.begin(), out.begin() + offset / 2);
    double error = 0, norm = 0;
    for (word i = 0; i < m; i++) {
        for (word j = 0; j < n; j++) {
            double want = 0;
            for (word x = 0; x < k; x++) want += real(a[i * k + x]) * real(b[x * n + j]);
            double d = real(out[i * pitch / 2 + j]) - want;
            error += d * d;
            norm += want * want;
        }
        for (word j = n; j < pitch / 2; j++) bad += expect("product: beside the rows", out[i * pitch / 2 + j], CANARY);
    }
    double relative = std::sqrt(error / norm);
    if (!(relative < 4e-3)) {
        std::fprintf(stderr, "product: %llu x %llu x %llu: relative error %g\n", m, n, k, relative);
        bad++;
    }
    for (word c = 0; c < tiles_all; c++) bad += expect("product: ready", w.gates(0, c).ready, 1);
    return bad;
}

// product: shapes with and without edges, compared with double precision.
unsigned long product(Backend &on, unsigned threads) {
    std::mt19937 random(12345);
    unsigned long bad = 0;
    bad += one_product(on, threads, 128, 128, 32, 0, random);
    bad += one_product(on, threads, 256, 384, 256, 0, random);
    bad += one_product(on, threads, 200, 136, 72, 8, random);
    bad += one_product(on, threads, 130, 264, 8, 2, random);
    bad += one_product(on, threads, 33, 17, 5, 1, random);
    return bad;
}

int all(Backend &on, unsigned rounds, unsigned ctas, unsigned threads, unsigned product_threads) {
    struct {
        const char *name;
        unsigned long bad;
    } results[] = {
        {"gather", gather(on, rounds, ctas, threads)},
        {"windows", windows(on)},
        {"scripts", scripts(on)},
        {"faults", faults(on)},
        {"progress", progress(on)},
        {"looks", looks(on)},
        {"orders", orders(on)},
        {"product", product(on, product_threads)},
    };
    int failed = 0;
    for (auto &r : results) {
        std::printf("%-9s %s\n", r.name, r.bad ? "FAILED" : "ok");
        failed |= r.bad != 0;
    }
    std::fflush(stdout);
    return failed;
}

} // namespace scenario
