"""Matrix products by cupy.matmul, which calls cuBLAS, and what follows them in kernels compiled at run time."""

import cupy
import numpy

from .dtypes import C_TYPES, CONVERSIONS

BLOCK = 128


def matmul(a, b):
    """a · b for matrices; cuBLAS is not asked where there is nothing to add up."""
    if 0 in (a.shape[0], a.shape[1], b.shape[1]):
        return cupy.zeros((a.shape[0], b.shape[1]), dtype=a.dtype)
    return cupy.matmul(a, b)


def row_packs(source, name, dtype, down=1):
    """The kernel ``name<T, kLanes>`` of a source that may use ``as_float``, ``put`` and ``Run``, as a launcher.

    A thread has one run of kLanes neighbours of a row, a 16-byte pack where rows are multiples of that and one element
    where not, or the runs of ``down`` rows. The kernel's last arguments are ``int columns, int across``: the length of
    a row in elements and in blocks of threads; ``run_place`` makes a place of them. ``scalars`` stand in front of them.
    ``unit`` is what must be whole packs where a row is several of it.
    """
    c_type = C_TYPES[dtype.name]
    most = 16 // dtype.itemsize
    names = {lanes: f"{name}<{c_type}, {lanes}>" for lanes in (1, most)}
    module = cupy.RawModule(
        code=CONVERSIONS + RUNS + source, options=("-std=c++17",), name_expressions=tuple(names.values())
    )
    kernels = {lanes: module.get_function(expression) for lanes, expression in names.items()}

    def launch(rows, columns, arrays, scalars=(), unit=None):
        aligned = (unit or columns) % most == 0 and all(array.data.ptr % 16 == 0 for array in arrays)
        lanes = most if aligned else 1
        across = -(-columns // (lanes * BLOCK))
        blocks = -(-rows // down) * across
        if blocks:
            kernels[lanes]((blocks,), (BLOCK,), (*arrays, *scalars, numpy.int32(columns), numpy.int32(across)))

    return launch


RUNS = r"""
// Where this thread's run is, by rows or by groups of them; outside of the row if column >= columns.
struct Place {
  long long row;
  int column;
};

template <int kLanes>
__device__ inline Place run_place(int across) {
  const int run = blockIdx.x % across * blockDim.x + threadIdx.x;
  return {blockIdx.x / across, run * kLanes};
}

// kLanes neighbours, moved in one access where there are 16 bytes of them.
template <typename T, int kLanes>
struct alignas(kLanes * sizeof(T)) Run {
  T lanes[kLanes];
};

template <int kLanes, typename T>
__device__ inline Run<T, kLanes> load_run(const T* place) {
  Run<T, kLanes> run;
  if constexpr (kLanes * sizeof(T) == 16) {
    *reinterpret_cast<uint4*>(&run) = *reinterpret_cast<const uint4*>(place);
  } else {
    run = *reinterpret_cast<const Run<T, kLanes>*>(place);
  }
  return run;
}

template <int kLanes, typename T>
__device__ inline void store_run(T* place, const Run<T, kLanes>& run) {
  if constexpr (kLanes * sizeof(T) == 16) {
    *reinterpret_cast<uint4*>(place) = *reinterpret_cast<const uint4*>(&run);
  } else {
    *reinterpret_cast<Run<T, kLanes>*>(place) = run;
  }
}

__device__ inline void put_pair(float* place, float first, float second) {
  place[0] = first;
  place[1] = second;
}
__device__ inline void put_pair(__half* place, float first, float second) {
  *reinterpret_cast<__half2*>(place) = __floats2half2_rn(first, second);
}

// Values as a run of T; two are rounded to 16 bits by one instruction.
template <typename T, int kLanes>
__device__ inline Run<T, kLanes> rounded(const float (&values)[kLanes]) {
  Run<T, kLanes> run;
#pragma unroll
  for (int i = 0; i + 1 < kLanes; i += 2) put_pair(run.lanes + i, values[i], values[i + 1]);
  if constexpr (kLanes % 2 == 1) put(run.lanes + kLanes - 1, values[kLanes - 1]);
  return run;
}
"""
