"""A batch of matrices transposed through shared memory, in CuPy's run-time compiled CUDA.

Tiles of 64 × 64 where rows and columns are whole 16-byte packs and both pointers are aligned: 16 bytes an access of
global memory on either side. Shared memory is used by 32-bit words whatever the element is: of 16-bit elements a thread
joins what lies one above the other into a word, a pair of neighbours of the transposed row. Its pitch is odd, so that a
warp's words fall two to a bank at most. All else takes padded tiles of 32 × 32, element by element.
"""

import cupy
import numpy

# The bits of an element are all that moving it needs.
WORDS = {4: "unsigned int", 2: "unsigned short"}
SMALL, WIDE, THREADS = 32, 64, 256

SOURCE = r"""
struct Corner { long long start, row, column; };

// A matrix of the batch and a tile in it, from the index of a block: neighbours lie side by side along the columns.
__device__ inline Corner corner_of(unsigned block, long long rows, long long columns, int size) {
  const unsigned across = static_cast<unsigned>((columns + size - 1) / size);
  const unsigned tiles = across * static_cast<unsigned>((rows + size - 1) / size), tile = block % tiles;
  return {static_cast<long long>(block / tiles) * rows * columns, static_cast<long long>(tile / across) * size,
          static_cast<long long>(tile % across) * size};
}

// x [batches, rows, columns] to y [batches, columns, rows]
template <typename Word>
__global__ void __launch_bounds__(256) transpose_tile(const Word* __restrict__ x, Word* __restrict__ y, long long rows,
                                                      long long columns) {
  __shared__ Word tile[32][33];
  const Corner at = corner_of(blockIdx.x, rows, columns, 32);
  const int across = threadIdx.x % 32, down = threadIdx.x / 32;
#pragma unroll
  for (int i = down; i < 32; i += 8) {
    const long long row = at.row + i, column = at.column + across;
    if (row < rows && column < columns) tile[i][across] = x[at.start + row * columns + column];
  }
  __syncthreads();
#pragma unroll
  for (int i = down; i < 32; i += 8) {
    const long long row = at.row + across, column = at.column + i;
    if (row < rows && column < columns) y[at.start + column * rows + row] = tile[across][i];
  }
}

// 16 bytes of whole elements, and those that lie in one column of some of them as a 32-bit word.
template <typename Word>
struct alignas(16) Lanes {
  Word lanes[16 / sizeof(Word)];
};

__device__ inline unsigned joined(const Lanes<unsigned int>* packs, int lane) { return packs[0].lanes[lane]; }

__device__ inline unsigned joined(const Lanes<unsigned short>* packs, int lane) {
  return packs[0].lanes[lane] | static_cast<unsigned>(packs[1].lanes[lane]) << 16;
}

template <typename Word>
__global__ void __launch_bounds__(256) transpose_packs(const Word* __restrict__ x, Word* __restrict__ y,
                                                       long long rows, long long columns) {
  constexpr int kLanes = 16 / sizeof(Word), kPacks = 64 / kLanes, kJoined = 4 / sizeof(Word);
  constexpr int kPitch = 64 / kJoined + 1, kLoads = 64 / kJoined * kPacks / 256, kStores = 64 * kPacks / 256;
  __shared__ unsigned tile[64 * kPitch];
  const Corner at = corner_of(blockIdx.x, rows, columns, 64);
  Lanes<Word> packs[kLoads][kJoined];
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int item = i * 256 + threadIdx.x;
    const long long row = at.row + item / kPacks * kJoined, column = at.column + item % kPacks * kLanes;
#pragma unroll
    for (int k = 0; k < kJoined; ++k) {
      if (row < rows && column < columns) {
        packs[i][k] = *reinterpret_cast<const Lanes<Word>*>(x + at.start + (row + k) * columns + column);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int item = i * 256 + threadIdx.x;
    unsigned* place = tile + item % kPacks * kLanes * kPitch + item / kPacks;
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) place[lane * kPitch] = joined(packs[i], lane);
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kStores; ++i) {
    const int item = i * 256 + threadIdx.x, down = item / kPacks, across = item % kPacks;
    const unsigned* words = tile + down * kPitch + across * 4;
    const long long row = at.row + across * kLanes, column = at.column + down;
    if (row < rows && column < columns) {
      *reinterpret_cast<uint4*>(y + at.start + column * rows + row) = {words[0], words[1], words[2], words[3]};
    }
  }
}
"""


def transposer(x, batches, rows, columns, shape):
    """``run`` for x as [batches, rows, columns] turned to [batches, columns, rows], returned in ``shape``."""
    word = WORDS[x.dtype.itemsize]
    names = tuple(f"{kernel}<{word}>" for kernel in ("transpose_tile", "transpose_packs"))
    module = cupy.RawModule(code=SOURCE, options=("-std=c++17",), name_expressions=names)
    by_element, by_packs = (module.get_function(name) for name in names)
    lanes = 16 // x.dtype.itemsize
    whole = rows % lanes == 0 and columns % lanes == 0

    def run():
        y = cupy.empty(shape, dtype=x.dtype)
        if y.size:
            source = cupy.ascontiguousarray(x)
            wide = whole and source.data.ptr % 16 == 0 and y.data.ptr % 16 == 0
            kernel, size = (by_packs, WIDE) if wide else (by_element, SMALL)
            grid = batches * -(-rows // size) * -(-columns // size)
            kernel((grid,), (THREADS,), (source, y, numpy.int64(rows), numpy.int64(columns)))
        return y

    return run
