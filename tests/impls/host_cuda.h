// CUDA C++ as CuPy's kernels use it, on a CPU: threads of a block are coroutines that take turns at barriers and shuffles.
// Blocks run one after another, every other one with its threads in reverse, so that a race between two of them shows.
// Accesses that are misaligned, leave the arrays or wait for threads that have ended are faults, told by fault().
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <type_traits>
#include <utility>

#include "host_scalars.h"

#define __shared__ static

namespace host {

enum State { kReady, kAtBarrier, kAtShuffle, kEnded };

struct Thread {
  ucontext_t context;
  Index index;
  State state;
  float shown[2];  // to the others of a warp, in this shuffle and in the next
  int turn;
};

constexpr int kMostThreads = 1024, kStack = 1 << 15;
static Thread threads[kMostThreads];
alignas(64) static char stacks[kMostThreads][kStack];
static ucontext_t scheduler;
static Thread* current;
static const char* said;
static void (*body)(void**);
static void** arguments;

inline void hand_over(State state) {
  current->state = state;
  swapcontext(&current->context, &scheduler);
}

inline void fail(const char* what) {
  said = what;
  current->state = kEnded;
  setcontext(&scheduler);
}

inline void begin() {
  body(arguments);
  hand_over(kEnded);
}

inline void on_signal(int) { fail("an access outside of every array"); }

// Threads that wait go on when all that they wait for do so too. False if none does.
inline bool release(int count) {
  bool any = false, all = true;
  for (int i = 0; i < count; ++i) all &= threads[i].state == kAtBarrier;
  for (int first = 0; first < count; first += 32) {
    const int end = min(first + 32, count);
    bool warp = true;
    for (int i = first; i < end; ++i) warp &= threads[i].state == kAtShuffle;
    for (int i = first; i < end && (all || warp); ++i) threads[i].state = kReady;
    any |= all || warp;
  }
  return any;
}

inline void run_block(int count, bool backwards) {
  for (int i = 0; i < count; ++i) {
    Thread& thread = threads[i];
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = stacks[i];
    thread.context.uc_stack.ss_size = kStack;
    thread.context.uc_link = nullptr;
    const unsigned x = i % blockDim.x, y = i / blockDim.x % blockDim.y;
    thread.index = {x, y, i / blockDim.x / blockDim.y};
    thread.state = kReady;
    thread.turn = 0;
    makecontext(&thread.context, begin, 0);
  }
  for (bool waiting = true; waiting && !said;) {
    waiting = false;
    for (int i = 0; i < count && !said; ++i) {
      current = threads + (backwards ? count - 1 - i : i);
      if (current->state != kReady) continue;
      threadIdx = current->index;
      swapcontext(&scheduler, &current->context);
      waiting |= current->state != kEnded;
    }
    if (waiting && !said && !release(count)) said = "threads that wait for others which do not come";
  }
}

template <typename P>
constexpr char kind_of() {
  return std::is_pointer_v<P> ? 'p' : std::is_floating_point_v<P> ? 'f' : 'i';
}

template <typename... P, size_t... I>
const char* launch(void (*)(P...), void (*call)(void**), const unsigned* grid, const unsigned* block, void** values,
                   const char* kinds, const int* sizes, int count, std::index_sequence<I...>) {
  if (count != sizeof...(P)) return "another number of arguments than the kernel has";
  if (((kinds[I] != kind_of<P>() || sizes[I] != static_cast<int>(sizeof(P))) || ...)) return "an argument of another type";
  if (block[0] * block[1] * block[2] > kMostThreads) return "too many threads";
  body = call;
  arguments = values;
  said = nullptr;
  struct sigaction action = {}, before[2];
  action.sa_handler = on_signal;
  action.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &action, before);
  sigaction(SIGBUS, &action, before + 1);
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  for (unsigned i = 0; i < grid[0] * grid[1] * grid[2] && !said; ++i) {
    blockIdx = {i % grid[0], i / grid[0] % grid[1], i / grid[0] / grid[1]};
    run_block(block[0] * block[1] * block[2], i % 2);
  }
  sigaction(SIGSEGV, before, nullptr);
  sigaction(SIGBUS, before + 1, nullptr);
  return said;
}

template <auto kKernel, typename... P, size_t... I>
void call_with(void** values, void (*)(P...), std::index_sequence<I...>) {
  kKernel(*static_cast<std::remove_cv_t<P>*>(values[I])...);
}

template <typename... P>
constexpr auto indices(void (*)(P...)) {
  return std::index_sequence_for<P...>();
}

template <auto kKernel>
void call(void** values) {
  call_with<kKernel>(values, kKernel, indices(kKernel));
}

}  // namespace host

#define HOST_KERNEL(name, ...)                                                                                       \
  extern "C" const char* name(const unsigned* grid, const unsigned* block, void** values, const char* kinds,         \
                              const int* sizes, int count) {                                                         \
    constexpr auto kernel = &__VA_ARGS__;                                                                            \
    return host::launch(kernel, host::call<kernel>, grid, block, values, kinds, sizes, count, host::indices(kernel)); \
  }

inline void __syncthreads() { host::hand_over(host::kAtBarrier); }

inline float __shfl_xor_sync(unsigned, float value, int step) {
  host::Thread* self = host::current;
  const int turn = self->turn;
  self->turn ^= 1;
  self->shown[turn] = value;
  host::hand_over(host::kAtShuffle);
  return host::threads[(self - host::threads) ^ step].shown[turn];
}

// What -fsanitize=alignment calls.
extern "C" __attribute__((used)) void __ubsan_handle_type_mismatch_v1(void*, uintptr_t) { host::fail("a misaligned access"); }
