/* emulator.cpp: a launch on fibers. */
#include "emulated/emulator.h"

#include "emulated/context.h"

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace
{

const unsigned RESIDENT = 3;            /* blocks that run at the same time */
const size_t STACK_BYTES = 192u * 1024; /* with a sanitizer's padding */
const unsigned PROCESSORS = 4;

struct warp;

struct copy {
    void *to;
    const void *from;
    unsigned bytes;
    bool is_valid;
    unsigned group;
};

struct fiber {
    context at;
    emulated_place here;
    warp *of;
    unsigned lane;
    std::vector<copy> copies;
    unsigned n_groups, n_waited; /* groups of copies: committed, and of those waited for */
};

struct block;

struct warp {
    block *of;
    uint32_t ready, live; /* lanes that can run, that have not ended */
    uint32_t arrived;     /* lanes that wait for the others to come to `operation` */
    emulated_operation operation;
    void *lanes[32];
    std::vector<fiber> fibers;
    uint64_t priority;
};

struct block {
    std::vector<std::unique_ptr<warp>> warps;
    std::unique_ptr<unsigned char[]> shared;
    unsigned live = 0, arrived = 0; /* threads that have not ended, that are at the barrier */
};

/* A launch while it runs. */
struct machine {
    const emulated_launch *launch;
    std::vector<unsigned> order; /* of the blocks that have not begun, the next one last */
    std::vector<std::unique_ptr<block>> blocks;
    std::vector<warp *> warps; /* of all resident blocks */
    context host;
    fiber *running = nullptr;
    size_t turn = 0; /* index of the running warp */
};

/* A launch that has not begun. */
struct waiting {
    emulated_launch launch;
    std::unique_ptr<unsigned char[]> argument;
};

emulator_schedule schedule = EMULATOR_LOCK_STEP;
std::vector<waiting> stream;
uint64_t random_state = 1;
machine *now; /* the launch that runs */
std::vector<std::unique_ptr<unsigned char[]>> stacks;

[[noreturn]] void fail(const char *what)
{
    const dim3 &b = now->running->here.block, &t = now->running->here.thread;
    std::fprintf(stderr, "emulator: %s (block %u,%u,%u, thread %u,%u,%u, schedule %s)\n", what, b.x, b.y, b.z, t.x, t.y,
                 t.z, emulator_name(schedule));
    std::abort();
}

uint64_t random_number() /* SplitMix64 */
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* ---- Who is next */

/* The first lane of a set after `lane`, going round. */
unsigned next_lane(uint32_t lanes, unsigned lane)
{
    uint32_t above = lane < 31 ? lanes & ~0u << (lane + 1) : 0;
    return static_cast<unsigned>(__builtin_ctz(above ? above : lanes));
}

bool lane_is_last(uint32_t ready, unsigned lane)
{
    return lane == 31 || ready >> (lane + 1) == 0;
}

/* The next lane of the running warp, and after its last one the next warp. */
fiber *next_in_step()
{
    unsigned lane = now->running ? now->running->lane : 31;
    size_t n = now->warps.size();
    if (lane_is_last(now->warps[now->turn]->ready, lane)) {
        lane = 31;
        for (size_t i = 1; i <= n; i++)
            if (now->warps[(now->turn + i) % n]->ready) {
                now->turn = (now->turn + i) % n;
                break;
            }
    }
    warp *w = now->warps[now->turn];
    return w->ready ? &w->fibers[next_lane(w->ready, lane)] : nullptr;
}

fiber *next_greedily()
{
    warp *best = nullptr;
    for (warp *w : now->warps)
        if (w->ready && (!best || w->priority > best->priority))
            best = w;
    if (!best)
        return nullptr;
    bool stays = now->running && now->running->of == best;
    return &best->fibers[next_lane(best->ready, stays ? now->running->lane : 31)];
}

fiber *next_at_random()
{
    size_t n = now->warps.size(), first = random_number() % n;
    for (size_t i = 0; i < n; i++) {
        warp *w = now->warps[(first + i) % n];
        if (w->ready)
            return &w->fibers[next_lane(w->ready, random_number() % 32)];
    }
    return nullptr;
}

fiber *next_fiber()
{
    switch (schedule) {
    case EMULATOR_GREEDY:
        return next_greedily();
    case EMULATOR_RANDOM:
        return next_at_random();
    default:
        return next_in_step();
    }
}

/* Goes on with whoever is next; comes back when the running fiber is. */
void reschedule()
{
    fiber *was = now->running, *next = next_fiber();
    if (!next)
        fail("every thread waits: a barrier or a warp-wide operation that not all come to");
    if (next == was)
        return;
    now->running = next;
    context_switch(&was->at, &next->at);
}

void stop()
{
    fiber *f = now->running;
    f->of->ready &= ~(1u << f->lane);
    reschedule();
}

/* ---- Blocks */

/* Priorities are drawn again: else a block with a warp of low priority would never come further than others. */
void release_barrier(block *b)
{
    b->arrived = 0;
    for (auto &w : b->warps) {
        w->ready = w->live;
        w->priority = random_number();
    }
}

/* The end of a thread. The host goes on if the block has ended too. */
void end_thread()
{
    fiber *f = now->running;
    block *b = f->of->of;
    if (!f->copies.empty())
        fail("a thread ends with copies under way");
    f->of->live &= ~(1u << f->lane);
    f->of->ready &= ~(1u << f->lane);
    b->live--;
    if (b->live && b->arrived == b->live)
        release_barrier(b);
    if (b->live == 0)
        context_switch(&f->at, &now->host);
    else
        stop();
}

void begin_thread()
{
    context_entered(now->host.stack ? nullptr : &now->host);
    now->launch->run(now->launch->kernel, now->launch->argument);
    end_thread();
}

void make_fiber(warp *w, unsigned lane, unsigned char *stack)
{
    fiber &f = w->fibers[lane];
    f.of = w;
    f.lane = lane;
    f.n_groups = f.n_waited = 0;
    context_make(&f.at, stack, STACK_BYTES, begin_thread);
}

void place_fiber(fiber &f, unsigned thread, unsigned index)
{
    const dim3 &size = now->launch->block, &grid = now->launch->grid;
    f.here.thread = dim3(thread % size.x, thread / size.x % size.y, thread / size.x / size.y);
    f.here.block = dim3(index % grid.x, index / grid.x % grid.y, index / grid.x / grid.y);
    f.here.block_size = size;
    f.here.grid_size = grid;
}

void begin_warp(block *b, warp *w, unsigned first_thread, unsigned index, size_t first_stack)
{
    w->of = b;
    w->ready = w->live = ~0u;
    w->arrived = 0;
    w->priority = random_number();
    w->fibers.resize(32);
    for (unsigned lane = 0; lane < 32; lane++) {
        make_fiber(w, lane, stacks[first_stack + lane].get());
        place_fiber(w->fibers[lane], first_thread + lane, index);
    }
}

/* Starts the next block in a resident one's place. */
void begin_block(block *b, size_t slot)
{
    const emulated_launch *l = now->launch;
    unsigned n = l->block.x * l->block.y * l->block.z, index = now->order.back();
    now->order.pop_back();
    b->live = n;
    b->arrived = 0;
    std::memset(b->shared.get(), 0xff, l->shared_bytes);
    for (unsigned i = 0; i < n / 32; i++)
        begin_warp(b, b->warps[i].get(), i * 32, index, slot * n + i * 32);
}

void make_order(machine *m)
{
    const dim3 &g = m->launch->grid;
    unsigned n = g.x * g.y * g.z;
    for (unsigned i = 0; i < n; i++)
        m->order.push_back(n - 1 - i);
    for (unsigned i = n; schedule == EMULATOR_RANDOM && i > 1; i--)
        std::swap(m->order[i - 1], m->order[random_number() % i]);
}

void make_blocks(machine *m)
{
    const dim3 &size = m->launch->block;
    unsigned n = size.x * size.y * size.z;
    for (unsigned i = 0; i < RESIDENT && i < m->order.size(); i++) {
        m->blocks.emplace_back(new block);
        /* Of the very size, for the address sanitizer. */
        m->blocks[i]->shared.reset(new unsigned char[m->launch->shared_bytes]);
        for (unsigned w = 0; w < n / 32; w++) {
            m->blocks[i]->warps.emplace_back(new warp());
            m->warps.push_back(m->blocks[i]->warps[w].get());
        }
    }
    while (stacks.size() < n * m->blocks.size())
        stacks.emplace_back(new unsigned char[STACK_BYTES]);
}

/* Runs until no block is left: each time a block ends, another one begins. */
void run(machine *m)
{
    for (;;) {
        for (size_t i = 0; i < m->blocks.size(); i++)
            if (m->blocks[i]->live == 0 && !m->order.empty())
                begin_block(m->blocks[i].get(), i);
        m->running = nullptr;
        m->running = next_fiber();
        if (!m->running)
            return;
        context_switch(&m->host, &m->running->at);
    }
}

/* ---- Copies */

void land(const copy &c)
{
    if (c.is_valid)
        std::memcpy(c.to, c.from, c.bytes);
    else
        std::memset(c.to, 0, c.bytes);
}

void land_waited(fiber *f)
{
    size_t left = 0;
    for (const copy &c : f->copies) {
        if (c.group < f->n_waited)
            land(c);
        else
            f->copies[left++] = c;
    }
    f->copies.resize(left);
}

void do_nothing(void *const[32])
{
}

struct vote {
    int mine, any;

    static void run(void *const lanes[32])
    {
        int any = 0;
        for (int i = 0; i < 32; i++)
            any |= static_cast<vote *>(lanes[i])->mine;
        for (int i = 0; i < 32; i++)
            static_cast<vote *>(lanes[i])->any = any;
    }
};

} // namespace

const emulated_place &emulated_here()
{
    return now->running->here;
}

unsigned char *emulated_shared_memory()
{
    return now->running->of->of->shared.get();
}

void emulated_together(emulated_operation operation, void *mine)
{
    fiber *f = now->running;
    warp *w = f->of;
    if (w->live != ~0u || (w->arrived && w->operation != operation))
        fail("not all lanes of a warp come to the same operation");
    w->operation = operation;
    w->lanes[f->lane] = mine;
    w->arrived |= 1u << f->lane;
    if (w->arrived != ~0u) {
        stop();
        return;
    }
    operation(w->lanes);
    w->arrived = 0;
    w->ready = ~0u;
    reschedule();
}

void emulated_yield()
{
    reschedule();
}

void emulated_copy(void *to, const void *from, unsigned bytes, bool is_valid)
{
    if (reinterpret_cast<uintptr_t>(to) % bytes || reinterpret_cast<uintptr_t>(from) % bytes)
        fail("a copy that is not aligned");
    fiber *f = now->running;
    copy c = {to, from, bytes, is_valid, f->n_groups};
    if (schedule == EMULATOR_RANDOM && random_number() % 2)
        land(c);
    else
        f->copies.push_back(c);
}

void emulated_copy_commit()
{
    now->running->n_groups++;
}

void emulated_copy_wait(unsigned groups_left)
{
    fiber *f = now->running;
    if (f->n_groups > f->n_waited + groups_left)
        f->n_waited = f->n_groups - groups_left;
}

void __syncthreads()
{
    fiber *f = now->running;
    block *b = f->of->of;
    land_waited(f);
    if (++b->arrived < b->live) {
        stop();
        return;
    }
    release_barrier(b);
    reschedule();
}

void __syncwarp()
{
    land_waited(now->running);
    emulated_together(do_nothing, nullptr);
}

void __threadfence()
{
}

int __any_sync(unsigned, int predicate)
{
    vote v = {predicate, 0};
    emulated_together(vote::run, &v);
    return v.any;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int)
{
    *value = PROCESSORS;
    return cudaSuccess;
}

cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}

cudaError_t emulated_run_later(const emulated_launch &launch, size_t argument_bytes)
{
    unsigned threads = launch.block.x * launch.block.y * launch.block.z;
    unsigned blocks = launch.grid.x * launch.grid.y * launch.grid.z;
    if (threads == 0 || threads % 32 || threads > 1024 || blocks == 0 || launch.shared_bytes > 99u * 1024)
        return cudaErrorInvalidValue;
    waiting w = {launch, std::unique_ptr<unsigned char[]>(new unsigned char[argument_bytes])};
    std::memcpy(w.argument.get(), launch.argument, argument_bytes);
    w.launch.argument = w.argument.get();
    stream.push_back(std::move(w));
    return cudaSuccess;
}

void emulator_finish()
{
    for (const waiting &w : stream) {
        machine m;
        m.launch = &w.launch;
        m.host = context();
        now = &m;
        make_order(&m);
        make_blocks(&m);
        run(&m);
        now = nullptr;
    }
    stream.clear();
}

void emulator_set(emulator_schedule chosen, uint64_t seed)
{
    schedule = chosen;
    random_state = seed;
}

const char *emulator_name(emulator_schedule chosen)
{
    static const char *const names[] = {"lock-step", "greedy", "random"};
    return names[chosen];
}
