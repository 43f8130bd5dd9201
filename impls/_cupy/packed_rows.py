"""A block a row in CuPy's run-time compiled CUDA, by 16-byte vectors: held in registers, or streamed through them.

A kernel that needs a row more than once is a template ``name<T, kPacks>(inputs..., y, long long length)`` on a
``Row<T, kPacks>``: kPacks vectors a thread, read once. A row that does not fit has kPacks = WALKED and is read again on
every walk, by vectors; one that is not 16-byte aligned has kPacks = 0, by single elements. A kernel that needs a row
once calls ``stream_row``.
"""

import cupy
import numpy

from .dtypes import C_TYPES, CONVERSIONS
from .rows import BLOCK_REDUCTIONS, threads_for

PACKS = (1, 2, 4, 8)  # of a thread; all but the last keep blocks small, so that several share a multiprocessor
WALKED = -1  # in place of their number, for a row that no block can hold
FEW_THREADS, MOST_THREADS = 256, 1024
STREAM_THREADS = 256

ROWS = r"""
// For as many vectors as a thread holds, of all the rows that a block does.
#define ROW_BOUNDS(kPacks) __launch_bounds__((kPacks) == 8 ? 1024 : (kPacks) <= 0 ? 512 : 256)

// Neighbouring elements that are moved at once; CuPy's run-time compiler aligns 16 bytes of them to 16 bytes.
template <typename T, int kCount>
struct alignas(kCount * sizeof(T)) Lanes {
  static constexpr int kLanes = kCount;
  T lanes[kCount];
};

template <int kCount, typename T>
__device__ inline Lanes<T, kCount> lanes_at(const T* place) {
  return *reinterpret_cast<const Lanes<T, kCount>*>(place);
}

template <int kCount, typename T>
__device__ inline void put_lanes(T* place, const Lanes<T, kCount>& some) {
  *reinterpret_cast<Lanes<T, kCount>*>(place) = some;
}

// kPacks vectors of a row in the registers of each thread, neighbours beside neighbours. The vectors are of 16 bytes
// unless the row goes with one of another type, lane by lane.
template <typename T, int kPacks, int kCount = 16 / sizeof(T)>
struct Row {
  static constexpr int kLanes = kCount;
  Lanes<T, kLanes> held[kPacks];
  int length;

  __device__ Row(const T* row, long long columns) : length(static_cast<int>(columns)) {
    visit([&](long long at, Lanes<T, kLanes>& some) { some = lanes_at<kLanes>(row + at); });
  }

  // Calls body(column of the first, lanes, lanes of the others) for all of this thread; body may change this row's.
  template <typename Body, typename... Others>
  __device__ void visit(Body body, const Others&... others) {
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      const int at = (pack * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * kLanes;
      if (at < length) body(at, held[pack], others.held[pack]...);
    }
  }
};

// A row that stays in memory; what body changes is forgotten.
template <typename T, int kCount>
struct WalkedRow {
  static constexpr int kLanes = kCount;
  const T* row;
  long long length;

  __device__ WalkedRow(const T* row, long long length) : row(row), length(length) {}

  template <typename Body, typename... Others>
  __device__ void visit(Body body, const Others&... others) {
    const auto take = [&](long long at) {
      Lanes<T, kLanes> some = lanes_at<kLanes>(row + at);
      body(at, some, lanes_at<kLanes>(others.row + at)...);
    };
    constexpr int kVectors = kLanes == 1 ? 4 : 2;  // in flight: nothing asks for the row's end in between
    const long long step = static_cast<long long>(blockDim.x) * kLanes;
    long long at = threadIdx.x * kLanes;
#pragma unroll 1
    for (; at + (kVectors - 1) * step < length; at += kVectors * step) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) take(at + v * step);
    }
#pragma unroll 1
    for (; at < length; at += step) take(at);
  }
};

template <typename T, int kCount>
struct Row<T, -1, kCount> : WalkedRow<T, kCount> {
  using WalkedRow<T, kCount>::WalkedRow;
};

template <typename T, int kCount>
struct Row<T, 0, kCount> : WalkedRow<T, 1> {
  using WalkedRow<T, 1>::WalkedRow;
};

template <int kCount>
struct Floats {
  static constexpr int kLanes = kCount;
  float lanes[kCount];
};

// Calls take(Floats) for the elements of a row that are this thread's, four vectors in flight. A row that begins at a
// misaligned address gives up its first elements, and its last, and is read by vectors in between.
template <typename T, typename Take>
__device__ inline void stream_row(const T* row, long long length, Take take) {
  constexpr int kLanes = 16 / sizeof(T), kVectors = 4;
  const long long step = static_cast<long long>(blockDim.x) * kLanes;
  const int misaligned = static_cast<int>(reinterpret_cast<unsigned long long>(row) % 16 / sizeof(T));
  const long long head = misaligned == 0 ? 0 : min(static_cast<long long>(kLanes - misaligned), length);
  const long long whole = head + (length - head) / kLanes * kLanes;
  if (threadIdx.x < head) take(Floats<1>{as_float(row[threadIdx.x])});
  if (whole + threadIdx.x < length) take(Floats<1>{as_float(row[whole + threadIdx.x])});
  long long at = head + threadIdx.x * kLanes;
#pragma unroll 1
  for (; at + (kVectors - 1) * step < whole; at += kVectors * step) {
    Lanes<T, kLanes> packs[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) packs[v] = lanes_at<kLanes>(row + at + v * step);
    Floats<kVectors * kLanes> some;
#pragma unroll
    for (int i = 0; i < kVectors * kLanes; ++i) some.lanes[i] = as_float(packs[i / kLanes].lanes[i % kLanes]);
    take(some);
  }
#pragma unroll 1
  for (; at < whole; at += step) {
    const Lanes<T, kLanes> pack = lanes_at<kLanes>(row + at);
    Floats<kLanes> some;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) some.lanes[i] = as_float(pack.lanes[i]);
    take(some);
  }
}
"""


def source_of(source):
    """The whole of a kernel's source: what it may use in front of it."""
    return CONVERSIONS + BLOCK_REDUCTIONS + ROWS + source


def plan(length, lanes, held=1):
    """kPacks and threads for rows of so many elements, ``lanes`` in a vector, of which a block holds ``held`` at once.

    kPacks is 0 where a row is not whole vectors.
    """
    vectors = length // lanes
    if length % lanes:
        return 0, threads_for(length)
    for most in PACKS:
        packs = most // held
        threads = max(-(-vectors // packs), 1) if packs else MOST_THREADS + 1
        if threads <= (FEW_THREADS if most < PACKS[-1] else MOST_THREADS):
            return packs, -(-threads // 32) * 32
    return WALKED, threads_for(length)


def held_rows(source, name, like, held=1):
    """``launch(y, arrays, *scalars)``: the kernel ``name`` on every row of ``arrays[0]``, for arrays like ``like``.

    ``arrays`` are the kernel's pointers, in order; scalars stand between them and y. ``held`` is how many of them the
    kernel has a Row of T for; its bounds are then ``ROW_BOUNDS(held * kPacks)``.
    """
    length = like.shape[1]
    packs, threads = plan(length, 16 // like.dtype.itemsize, held)
    names = tuple(f"{name}<{C_TYPES[like.dtype.name]}, {each}>" for each in dict.fromkeys((packs, 0)))
    module = cupy.RawModule(code=source_of(source), options=("-std=c++17",), name_expressions=names)
    by_packs, by_elements = (module.get_function(names[0]), module.get_function(names[-1]))

    def launch(y, arrays, *scalars):
        if y.size:
            aligned = packs and all(array.data.ptr % 16 == 0 for array in (*arrays, y))
            kernel, block = (by_packs, threads) if aligned else (by_elements, threads_for(length))
            kernel((y.shape[0],), (block,), (*arrays, *scalars, y, numpy.int64(length)))
        return y

    return launch


def streamed_rows(source, name, like):
    """``launch(y, arrays)``: the kernel ``name<T>`` on every row of ``arrays[0]``, one result a row in y."""
    expression = f"{name}<{C_TYPES[like.dtype.name]}>"
    module = cupy.RawModule(code=source_of(source), options=("-std=c++17",), name_expressions=(expression,))
    kernel = module.get_function(expression)
    length = like.shape[1]
    threads = min(threads_for(length), STREAM_THREADS)

    def launch(y, arrays):
        if y.size:
            kernel((y.size,), (threads,), (*arrays, y, numpy.int64(length)))
        return y

    return launch
