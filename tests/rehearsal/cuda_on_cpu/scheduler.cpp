// Runs the threads of a kernel one after another: blocks in their order, threads of a block as fibers.
//
// A thread runs until it waits for others (a barrier, a shuffle) or ends.  The second half of a block's threads, and
// of a warp's lanes, runs first: what thread 0 writes for all others, and what it reads of them, both show at once
// if a barrier is missing.  A warp goes on as far as it can before the next one begins, so that it overwrites at once
// what others have yet to read.  Shared memory holds NaN when a block begins.
//
// What the compiler checks (indices of arrays, alignment, overflow of int) ends the launch with a message, too.
//
// A thread that ends without having waited leaves its stack to the next one, so that kernels without barriers are
// plain loops.

#include "signature.h"
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
char *rehearsal_dynamic_shared;

namespace {
enum State { NEW, READY, RUNNING, AT_BARRIER, IN_WARP, ENDED };
const size_t STACK = 1 << 18;
const unsigned char POISON = 0xff;  // NaN as a float of any size, -1 as a number

struct Fiber {
    ucontext_t first;
    jmp_buf later;
    bool has_begun = false;
    void *stack;
};

struct Thread {
    uint3 index;
    State state;
    Fiber *fiber;
    RehearsalMeeting meeting;
    unsigned mask;
    uint64_t number;  // given, and after the meeting received
    int from_lane;
};

std::vector<Thread> threads;
std::vector<int> order;
std::vector<Fiber *> idle;
int current, n_waiting, n_ended;
size_t next_in_order;
void (*body_)(void **);
void **arguments_;
Fiber *started;
ucontext_t home_first;
jmp_buf home;
char message[512];
bool has_failed;

// Of n numbers the second half, then the first.
int rotated(int i, int n) { return (i + n / 2) % n; }

void find_order(int n)
{
    order.clear();
    const int warps = (n + 31) / 32;
    for (int w = 0; w < warps; ++w) {
        const int first = rotated(w, warps) * 32, lanes = n - first < 32 ? n - first : 32;
        for (int lane = 0; lane < lanes; ++lane) order.push_back(first + rotated(lane, lanes));
    }
}

void run_current()
{
    Thread &thread = threads[current];
    thread.state = RUNNING;
    threadIdx = thread.index;
    body_(arguments_);
    threads[current].state = ENDED;
    ++n_ended;
}

void fiber_main()
{
    Fiber *own = started;
    for (;;) {
        threads[current].fiber = own;
        run_current();
        if (next_in_order < order.size() && threads[order[next_in_order]].state == NEW &&
            order[next_in_order] / 32 == current / 32) {
            current = order[next_in_order++];
            continue;
        }
        idle.push_back(own);
        if (!_setjmp(own->later)) _longjmp(home, 1);
        // Taken again from the idle ones: ``current`` is new.
    }
}

Fiber *take_fiber()
{
    if (!idle.empty()) {
        Fiber *fiber = idle.back();
        idle.pop_back();
        return fiber;
    }
    Fiber *fiber = new Fiber;
    fiber->stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return fiber;
}

// Let a fiber run until it waits or has nothing to do.
void enter(Fiber *fiber)
{
    if (_setjmp(home)) return;
    if (fiber->has_begun) _longjmp(fiber->later, 1);
    fiber->has_begun = true;
    started = fiber;
    getcontext(&fiber->first);
    fiber->first.uc_stack.ss_sp = fiber->stack;
    fiber->first.uc_stack.ss_size = STACK;
    fiber->first.uc_link = nullptr;
    makecontext(&fiber->first, fiber_main, 0);
    swapcontext(&home_first, &fiber->first);
}

// Leave the present thread waiting, until the scheduler comes back to it.
void wait(State state)
{
    const int own = current;
    Fiber *fiber = threads[own].fiber;
    threads[own].state = state;
    if (!_setjmp(fiber->later)) _longjmp(home, 1);
    current = own;
    threads[own].state = RUNNING;
    threadIdx = threads[own].index;
}

bool all_lanes_meet(const Thread &own, int first, int lanes)
{
    for (int lane = 0; lane < lanes; ++lane) {
        if (!(own.mask >> lane & 1)) continue;
        const Thread &other = threads[first + lane];
        if (other.state != IN_WARP || other.meeting != own.meeting || other.mask != own.mask) return false;
    }
    return true;
}

void explain_deadlock()
{
    int barrier = 0, warp = 0;
    for (const Thread &thread : threads) {
        barrier += thread.state == AT_BARRIER;
        warp += thread.state == IN_WARP;
    }
    snprintf(message, sizeof message,
             "block (%u, %u, %u): %d of %d threads wait at __syncthreads, %d in an operation of their warp (a shuffle, "
             "a ballot, __syncwarp), and %d have ended; the others never come",
             blockIdx.x, blockIdx.y, blockIdx.z, barrier, (int)threads.size(), warp, n_ended);
}

size_t end_of_warp(size_t place)
{
    const int warp = order[place] / 32;
    while (place < order.size() && order[place] / 32 == warp) ++place;
    return place;
}

bool run_block()
{
    const int n = (int)threads.size();
    for (Thread &thread : threads) thread.state = NEW;
    n_waiting = n_ended = 0;
    while (n_ended < n) {
        bool moved = false;
        for (size_t first = 0; first < order.size();) {
            const size_t last = end_of_warp(first);
            bool warp_moved = false;
            next_in_order = first;
            while (next_in_order < last) {
                const int t = order[next_in_order++];
                if (threads[t].state != NEW && threads[t].state != READY) continue;
                moved = warp_moved = true;
                Fiber *fiber = threads[t].state == NEW ? take_fiber() : threads[t].fiber;
                current = t;
                enter(fiber);
                if (has_failed) return false;
            }
            if (!warp_moved) first = last;
        }
        if (!moved) {
            explain_deadlock();
            return false;  // the stacks of those that wait are given up
        }
    }
    return true;
}
}  // namespace

int rehearsal_lane()
{
    return current % 32;
}

void rehearsal_block_barrier()
{
    if (++n_waiting < (int)threads.size()) {
        wait(AT_BARRIER);
        return;
    }
    n_waiting = 0;
    for (Thread &thread : threads)
        if (thread.state == AT_BARRIER) thread.state = READY;
    // The last to come waits with the others, so that all of them go on in their order.
    wait(READY);
}

uint64_t rehearsal_warp(RehearsalMeeting meeting, unsigned mask, uint64_t given, int from_lane)
{
    Thread &own = threads[current];
    const int first = current / 32 * 32, n = (int)threads.size(), lanes = n - first < 32 ? n - first : 32;
    own.meeting = meeting, own.mask = mask, own.number = given, own.from_lane = from_lane;
    own.state = IN_WARP;
    if (all_lanes_meet(own, first, lanes)) {
        uint64_t received[32];
        unsigned ballot = 0;
        for (int lane = 0; lane < lanes; ++lane)
            if (mask >> lane & 1 && threads[first + lane].number) ballot |= 1u << lane;
        for (int lane = 0; lane < lanes; ++lane) {
            const int from = threads[first + lane].from_lane;
            const bool gives = from >= 0 && from < lanes && (mask >> from & 1);
            received[lane] = meeting == WARP_BALLOT ? ballot : gives ? threads[first + from].number : ~0ull;
        }
        for (int lane = 0; lane < lanes; ++lane)
            if (mask >> lane & 1) {
                threads[first + lane].number = received[lane];
                threads[first + lane].state = READY;
            }
        wait(READY);
    } else {
        wait(IN_WARP);
    }
    return threads[current].number;
}

// Called by compiled kernels when a check fails; the data begin with the place in the source.
struct Place {
    const char *file;
    unsigned line, column;
};

[[noreturn]] static void fail(const Place *place, const char *what)
{
    snprintf(message, sizeof message, "%s:%u: %s, in thread (%u, %u, %u) of block (%u, %u, %u)", place->file, place->line,
             what, threadIdx.x, threadIdx.y, threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z);
    has_failed = true;
    _longjmp(home, 1);
}

extern "C" {
void __ubsan_handle_type_mismatch_v1(Place *place, uintptr_t address)
{
    fail(place, address ? "an address is not a multiple of the size of what is read there" : "a null pointer");
}
void __ubsan_handle_out_of_bounds(Place *place, uintptr_t) { fail(place, "an index beyond the end of its array"); }
void __ubsan_handle_shift_out_of_bounds(Place *place, uintptr_t, uintptr_t) { fail(place, "a shift by too many bits"); }
void __ubsan_handle_add_overflow(Place *place, uintptr_t, uintptr_t) { fail(place, "a sum is too large for its type"); }
void __ubsan_handle_sub_overflow(Place *place, uintptr_t, uintptr_t)
{
    fail(place, "a difference is too large for its type");
}
void __ubsan_handle_mul_overflow(Place *place, uintptr_t, uintptr_t)
{
    fail(place, "a product is too large for its type");
}
void __ubsan_handle_negate_overflow(Place *place, uintptr_t) { fail(place, "a number is too large for its type"); }
void __ubsan_handle_divrem_overflow(Place *place, uintptr_t, uintptr_t) { fail(place, "a division by 0"); }
}

const char *rehearsal_run(void (*body)(void **), void **arguments, const unsigned *grid, const unsigned *block,
                          size_t dynamic_bytes, const RehearsalShared *shared, int n_shared)
{
    body_ = body, arguments_ = arguments;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    threads.clear();
    for (unsigned z = 0; z < block[2]; ++z)
        for (unsigned y = 0; y < block[1]; ++y)
            for (unsigned x = 0; x < block[0]; ++x) threads.push_back(Thread{{x, y, z}, NEW, nullptr});
    find_order((int)threads.size());
    rehearsal_dynamic_shared = (char *)aligned_alloc(64, (dynamic_bytes + 64) / 64 * 64);
    bool went_well = true;
    has_failed = false;
    for (unsigned z = 0; went_well && z < grid[2]; ++z)
        for (unsigned y = 0; went_well && y < grid[1]; ++y)
            for (unsigned x = 0; went_well && x < grid[0]; ++x) {
                blockIdx = {x, y, z};
                for (int i = 0; i < n_shared; ++i)
                    if (shared[i].start) memset(shared[i].start, POISON, shared[i].stop - shared[i].start);
                memset(rehearsal_dynamic_shared, POISON, dynamic_bytes);
                went_well = run_block();
            }
    free(rehearsal_dynamic_shared);
    return went_well ? nullptr : message;
}
