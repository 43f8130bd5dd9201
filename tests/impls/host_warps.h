// CUDA C++ with the instructions of warps, on a CPU: a stand-in for the CUDA runtime and for nvcc's built-ins.
//
// Threads are fibers that run until they wait: at a barrier for the block, at an instruction of a warp for its lanes. A
// warp runs on alone until its barrier, so that what another should have written first is not there yet. Shared memory
// is NaN before each block. Asynchronous copies read their source and write as late as a wait allows, so that a missing
// wait shows, or at once, so that a copy over what is still needed shows: Order says which, and how warps take turns.
// Accesses outside of arrays, misaligned ones and waits for what does not come are faults, told by host::said.
#pragma once

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <deque>
#include <functional>
#include <map>
#include <type_traits>

#include "host_scalars.h"

#define __host__
#define __shared__ static
#define __syncwarp() host::at_warp({host::kSync})

struct dim3 {
  unsigned x, y, z;
  dim3(int64_t x, int64_t y = 1, int64_t z = 1)
      : x(static_cast<unsigned>(x)), y(static_cast<unsigned>(y)), z(static_cast<unsigned>(z)) {}
};

namespace host {

enum Operation { kSync, kShuffle, kFromLane, kTranspose, kLoad, kLoadTransposed, kMultiplyHalf, kMultiplyBfloat16 };

// What a lane brings to an instruction of its warp.
struct Brought {
  Operation operation;
  uint32_t address = 0;  // into shared memory; of a shuffle or a transposition the value
  int distance = 0;      // of a shuffle: to the other lane by exclusive or, or its number
  uint32_t* out = nullptr;
  float* sums = nullptr;
  const uint32_t* a = nullptr;
  uint32_t b[2] = {};
};

struct Copy {
  uint32_t destination;
  const void* source;  // nullptr: zeros
  int group;
};

enum State { kReady, kAtBarrier, kAtWarp, kEnded };

struct Lane {
  ucontext_t start;
  jmp_buf at;
  bool begun;
  State state;
  Brought brought;
  std::deque<Copy> copies;
  int groups;  // committed
};

struct Order {
  bool backwards;  // warps by falling numbers
  bool eager;      // copies at once
};

constexpr int kMostThreads = 1024, kStack = 1 << 16, kWarpLanes = 32;
constexpr int kSharedMost = 227 << 10, kSharedUsual = 48 << 10;
static Lane lanes[kMostThreads];
alignas(64) static char stacks[kMostThreads][kStack];
static jmp_buf scheduler;
static Lane* current;
static const char* said;
static Order order;
static int processors, launches;
static std::function<void()> body;
static unsigned char* shared;
static int shared_bytes;
static std::map<const void*, int> allowed;  // shared memory of a kernel

inline void fail(const char* what) {
  said = what;
  _longjmp(scheduler, 1);
}

inline void on_signal(int) { fail("an access outside of every array"); }

inline void hand_over(State state) {
  current->state = state;
  if (!_setjmp(current->at)) _longjmp(scheduler, 1);
}

inline uint32_t at_warp(const Brought& brought) {
  current->brought = brought;
  hand_over(kAtWarp);
  return current->brought.address;
}

inline unsigned char* shared_place(uint32_t address) {
  if (address % 16 != 0) fail("16 bytes of shared memory at no multiple of 16");
  if (address + 16 > static_cast<uint32_t>(shared_bytes)) fail("16 bytes outside of shared memory");
  return shared + address;
}

inline void perform(const Copy& copy) {
  unsigned char* place = shared_place(copy.destination);
  copy.source ? memcpy(place, copy.source, 16) : memset(place, 0, 16);
}

inline void copy_async(uint32_t destination, const void* source, bool inside) {
  if (reinterpret_cast<uintptr_t>(source) % 16 != 0) fail("an asynchronous copy from no multiple of 16");
  const Copy copy = {destination, inside ? source : nullptr, current->groups};
  order.eager ? perform(copy) : current->copies.push_back(copy);
}

inline void wait_copies(int pending) {
  std::deque<Copy>& copies = current->copies;
  for (; !copies.empty() && copies.front().group < current->groups - pending; copies.pop_front()) {
    perform(copies.front());
  }
}

// Matrix i by the addresses of lanes 8i to 8i + 7; PTX ISA, "ldmatrix".
inline void load_matrices(Lane* warp, bool transposed) {
  uint16_t matrices[4][8][8];
  for (int i = 0; i < kWarpLanes; ++i) memcpy(matrices[i / 8][i % 8], shared_place(warp[i].brought.address), 16);
  for (int i = 0; i < kWarpLanes; ++i) {
    for (int m = 0; m < 4; ++m) {
      uint32_t word = 0;
      for (int half = 0; half < 2; ++half) {
        const int row = i / 4, column = i % 4 * 2 + half;
        word |= static_cast<uint32_t>(transposed ? matrices[m][column][row] : matrices[m][row][column]) << 16 * half;
      }
      warp[i].brought.out[m] = word;
    }
  }
}

template <typename T, float (*kConvert)(T)>
const float* values_of_bits() {
  static float* const table = [] {
    float* made = new float[1 << 16];
    for (int bits = 0; bits < 1 << 16; ++bits) made[bits] = kConvert({static_cast<uint16_t>(bits)});
    return made;
  }();
  return table;
}

// PTX ISA, "Matrix Fragments for mma.m16n8k16".
__attribute__((optimize("O3"))) inline void multiply(Lane* warp, const float* values) {
  float a[16][16], b[16][8], c[16][8];
  for (int i = 0; i < kWarpLanes; ++i) {
    const int g = i / 4, t = i % 4;
    const Brought& brought = warp[i].brought;
    for (int half = 0; half < 2; ++half) {
      for (int word = 0; word < 4; ++word) {
        a[g + word % 2 * 8][t * 2 + half + word / 2 * 8] = values[brought.a[word] >> 16 * half & 0xffff];
      }
      for (int word = 0; word < 2; ++word) {
        b[t * 2 + half + word * 8][g] = values[brought.b[word] >> 16 * half & 0xffff];
      }
      for (int row = 0; row < 2; ++row) c[g + row * 8][t * 2 + half] = brought.sums[row * 2 + half];
    }
  }
  for (int row = 0; row < 16; ++row) {
    for (int k = 0; k < 16; ++k) {
      for (int column = 0; column < 8; ++column) c[row][column] += a[row][k] * b[k][column];
    }
  }
  for (int i = 0; i < kWarpLanes; ++i) {
    for (int at = 0; at < 4; ++at) warp[i].brought.sums[at] = c[i / 4 + at / 2 * 8][i % 4 * 2 + at % 2];
  }
}

inline void shuffle(Lane* warp, bool numbered) {
  uint32_t values[kWarpLanes];
  for (int i = 0; i < kWarpLanes; ++i) values[i] = warp[i].brought.address;
  for (int i = 0; i < kWarpLanes; ++i) {
    const int distance = warp[i].brought.distance;
    warp[i].brought.address = values[numbered ? distance % kWarpLanes : i ^ distance];
  }
}

// PTX ISA, "movmatrix".
inline void transpose(Lane* warp) {
  uint16_t matrix[8][8];
  for (int i = 0; i < kWarpLanes; ++i) {
    for (int half = 0; half < 2; ++half) {
      matrix[i / 4][i % 4 * 2 + half] = static_cast<uint16_t>(warp[i].brought.address >> 16 * half);
    }
  }
  for (int i = 0; i < kWarpLanes; ++i) {
    const int column = i / 4, row = i % 4 * 2;
    warp[i].brought.address = matrix[row][column] | static_cast<uint32_t>(matrix[row + 1][column]) << 16;
  }
}

// All lanes wait for the same instruction: it is done.
inline void perform(Lane* warp) {
  const Operation operation = warp->brought.operation;
  for (int i = 0; i < kWarpLanes; ++i) {
    if (warp[i].brought.operation != operation) fail("lanes of a warp at different instructions");
  }
  if (operation == kShuffle || operation == kFromLane) shuffle(warp, operation == kFromLane);
  if (operation == kTranspose) transpose(warp);
  if (operation == kLoad || operation == kLoadTransposed) load_matrices(warp, operation == kLoadTransposed);
  if (operation == kMultiplyHalf) multiply(warp, values_of_bits<__half, __half2float>());
  if (operation == kMultiplyBfloat16) multiply(warp, values_of_bits<__nv_bfloat16, __bfloat162float>());
  for (int i = 0; i < kWarpLanes; ++i) warp[i].state = kReady;
}

inline void begin() {
  body();
  for (const Copy& copy : current->copies) {
    if (copy.source) fail("a thread that ends before its copies have arrived");
  }
  hand_over(kEnded);
}

__attribute__((noinline)) inline void resume(int thread) {
  current = lanes + thread;
  const unsigned row = thread / blockDim.x;
  threadIdx = {thread % blockDim.x, row % blockDim.y, row / blockDim.y};
  if (_setjmp(scheduler)) return;
  if (current->begun) _longjmp(current->at, 1);
  current->begun = true;
  setcontext(&current->start);
}

__attribute__((noinline)) inline void perform_guarded(Lane* warp) {
  if (!_setjmp(scheduler)) perform(warp);
}

// Until all its lanes are at a barrier or have ended.
inline void run_warp(int first) {
  while (!said) {
    for (int i = first; i < first + kWarpLanes && !said; ++i) {
      if (lanes[i].state == kReady) resume(i);
    }
    int waiting = 0, held = 0;
    for (int i = first; i < first + kWarpLanes; ++i) {
      waiting += lanes[i].state == kAtWarp;
      held += lanes[i].state == kAtBarrier;
    }
    if (said || waiting == 0) return;
    if (waiting < kWarpLanes) said = "lanes that wait for others of their warp which do not come";
    else perform_guarded(lanes + first);
  }
}

inline void run_block(int count) {
  memset(shared, 0xff, shared_bytes);
  for (int i = 0; i < count; ++i) {
    Lane& lane = lanes[i];
    getcontext(&lane.start);
    lane.start.uc_stack.ss_sp = stacks[i];
    lane.start.uc_stack.ss_size = kStack;
    lane.start.uc_link = nullptr;
    makecontext(&lane.start, begin, 0);
    lane.begun = false;
    lane.state = kReady;
    lane.copies.clear();
    lane.groups = 0;
  }
  const int warps = count / kWarpLanes;
  while (!said) {
    for (int i = 0; i < warps && !said; ++i) run_warp((order.backwards ? warps - 1 - i : i) * kWarpLanes);
    int held = 0, ended = 0;
    for (int i = 0; i < count; ++i) {
      held += lanes[i].state == kAtBarrier;
      ended += lanes[i].state == kEnded;
    }
    if (said || ended == count) return;
    if (held != count) said = "a barrier that not every thread comes to";
    for (int i = 0; i < count; ++i) lanes[i].state = kReady;
  }
}

// Memory against a page that must not be touched, NaN in all of it; it begins at a multiple of `alignment`.
inline unsigned char* guarded(int64_t bytes, int alignment) {
  const int64_t page = sysconf(_SC_PAGESIZE), room = (bytes + alignment + page - 1) / page * page;
  void* memory = mmap(nullptr, room + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  unsigned char* inner = static_cast<unsigned char*>(memory) + page;
  mprotect(memory, page, PROT_NONE);
  mprotect(inner + room, page, PROT_NONE);
  memset(inner, 0xff, room);
  return inner + (room - bytes) / alignment * alignment;
}

inline void launch(dim3 grid, dim3 threads, int64_t bytes, const void* kernel) {
  const int block = static_cast<int>(threads.x * threads.y * threads.z);
  const int most = allowed.count(kernel) ? allowed[kernel] : kSharedUsual;
  if (grid.x < 1 || grid.x > 0x7fffffff || grid.y < 1 || grid.y > 0xffff || grid.z < 1 || grid.z > 0xffff ||
      block < 1 || block > kMostThreads) {
    said = "a launch of a wrong size";
  } else if (block % kWarpLanes != 0) said = "a launch of parts of warps: not modelled";
  else if (bytes > most) said = "a launch with more shared memory than was allowed";
  if (said) return;
  ++launches;
  struct sigaction action = {}, before[2];
  action.sa_handler = on_signal;
  action.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &action, before);
  sigaction(SIGBUS, &action, before + 1);
  shared_bytes = static_cast<int>(bytes);
  shared = guarded(bytes, 128);
  gridDim = {grid.x, grid.y, grid.z};
  blockDim = {threads.x, threads.y, threads.z};
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x && !said; ++x) {
        blockIdx = {x, y, z};
        run_block(block);
      }
    }
  }
  sigaction(SIGSEGV, before, nullptr);
  sigaction(SIGBUS, before + 1, nullptr);
}

// What `name<<<grid, block, bytes, stream>>>(arguments)` becomes where the name is a function's or a template's.
template <typename Call>
auto calling(Call call, dim3 grid, dim3 block, int64_t bytes, void*) {
  return [=](auto... arguments) {
    body = [=] { call(arguments...); };
    launch(grid, block, bytes, nullptr);
  };
}

// And where it is a variable: how much shared memory was allowed is known by its address.
template <typename... P>
auto launcher(void (*kernel)(P...), dim3 grid, dim3 block, int64_t bytes, void*) {
  return [=](std::type_identity_t<P>... arguments) {
    body = [=] { kernel(arguments...); };
    launch(grid, block, bytes, reinterpret_cast<const void*>(kernel));
  };
}

}  // namespace host

inline void __syncthreads() { host::hand_over(host::kAtBarrier); }

template <typename V>
V __shfl_xor_sync(unsigned, V value, int distance) {
  return bits_as<V>(host::at_warp({host::kShuffle, bits_as<uint32_t>(value), distance}));
}

template <typename V>
V __shfl_sync(unsigned, V value, int lane) {
  return bits_as<V>(host::at_warp({host::kFromLane, bits_as<uint32_t>(value), lane}));
}

using cudaStream_t = void*;
enum cudaError_t { cudaSuccess, cudaErrorLaunchFailure };
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrMaxThreadsPerMultiProcessor,
  cudaDevAttrMaxSharedMemoryPerBlockOptin
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };

inline cudaError_t cudaGetLastError() { return host::said ? cudaErrorLaunchFailure : cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t) { return host::said ? host::said : "too much of something"; }

inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrMultiProcessorCount             ? host::processors
           : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? host::kSharedMost
                                                                   : 2048;
  return cudaSuccess;
}

template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute, int value) {
  if (value > host::kSharedMost) return cudaErrorLaunchFailure;
  host::allowed[reinterpret_cast<const void*>(kernel)] = value;
  return cudaSuccess;
}

// What -fsanitize=alignment calls.
extern "C" __attribute__((used)) void __ubsan_handle_type_mismatch_v1(void*, uintptr_t) {
  host::fail("a misaligned access");
}
