"""A 3 × 3 convolution as cuBLAS sees it: the pixels under each tap written out (im2col), a product, a pass over that.

Pixels q = n·H·W + h·W + w are numbered over all images, so that a batch is one product, [O, 9C] by [9C, q]. An
array of planes is given with two strides, from image to image and from channel to channel: [N, C, H, W] and a product's
[C, N·H·W] differ in nothing else. A thread has as many neighbouring pixels as 16 bytes hold, where planes are multiples
of that, or half, a quarter or one. It reads what lies under them and beside them once for all taps of a row.
"""

import math

import cupy
import numpy

from .dtypes import C_TYPES, CONVERSIONS
from .products import RUNS

THREADS = 256
MOST_DOWN = 65535  # blocks along the grid's second dimension, which take channels in turns
WORDS = {4: "unsigned int", 2: "unsigned short"}  # the bits of an element are all that moving it needs

SOURCE = r"""
// columns [9C, N · H · W]. A thread has kLanes neighbouring pixels of an image and of each of its channels,
// which are `packs` over all images. kLoad of them are read at once: rows of pixels begin at multiples of that.
template <typename Word, int kLanes, int kLoad>
__global__ void __launch_bounds__(256) write_columns(const Word* __restrict__ x, Word* __restrict__ columns,
                                                     unsigned packs, int channels, unsigned plane, int width,
                                                     long long image_stride, long long channel_stride) {
  const unsigned pack = blockIdx.x * blockDim.x + threadIdx.x;
  if (pack >= packs) return;
  const unsigned in_image = plane / kLanes, first = pack % in_image * kLanes;
  const long long pixels = static_cast<long long>(packs) * kLanes;
  x += pack / in_image * image_stride;
  columns += static_cast<long long>(pack) * kLanes;
  bool has_left[kLanes], has_right[kLanes];  // a neighbour in its row
  int column = static_cast<int>(first % width);
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    has_left[i] = column > 0;
    has_right[i] = column < width - 1;
    if constexpr (kLoad == kLanes) {  // all in one row
      has_left[i] |= i > 0;
      has_right[i] |= i < kLanes - 1;
    }
    if (++column == width) column = 0;
  }
  for (int channel = blockIdx.y; channel < channels; channel += gridDim.y) {
    const Word* source = x + channel * channel_stride;
    Word* target = columns + static_cast<long long>(channel) * 9 * pixels;
#pragma unroll
    for (int down = -1; down <= 1; ++down) {
      // Pixels above the plane are far behind its end, since these do not have a sign.
      const unsigned at = first + static_cast<unsigned>(down * width);
      Word line[kLanes + 2];
#pragma unroll
      for (int v = 0; v < kLanes; v += kLoad) {
        Run<Word, kLoad> run = {};
        if (at + v < plane) run = load_run<kLoad>(source + (at + v));
#pragma unroll
        for (int i = 0; i < kLoad; ++i) line[1 + v + i] = run.lanes[i];
      }
      line[0] = at - 1 < plane ? source[at - 1] : Word(0);
      line[kLanes + 1] = at + kLanes < plane ? source[at + kLanes] : Word(0);
#pragma unroll
      for (int right = -1; right <= 1; ++right) {
        Run<Word, kLanes> taps;
#pragma unroll
        for (int i = 0; i < kLanes; ++i) {
          const bool inside = right == 0 || (right < 0 ? has_left[i] : has_right[i]);
          taps.lanes[i] = inside ? line[1 + i + right] : Word(0);
        }
        store_run<kLanes>(target, taps);
        target += pixels;
      }
    }
  }
}

// y = relu(product · scale + shift), product [O, N · H · W]; a residual laid out as y is added before or after the ReLU
template <typename T, int kLanes>
__global__ void __launch_bounds__(256) finish(const T* __restrict__ product, const float* __restrict__ scale,
                                              const float* __restrict__ shift, const T* __restrict__ residual,
                                              T* __restrict__ y, unsigned packs, int outputs, unsigned plane,
                                              long long image_stride, long long channel_stride, int add_first) {
  const unsigned pack = blockIdx.x * blockDim.x + threadIdx.x;
  if (pack >= packs) return;
  const unsigned in_image = plane / kLanes;
  const long long in_channel = pack / in_image * image_stride + pack % in_image * kLanes;
  for (int output = blockIdx.y; output < outputs; output += gridDim.y) {
    const long long place = in_channel + output * channel_stride;
    const Run<T, kLanes> sums = load_run<kLanes>(product + (static_cast<long long>(output) * packs + pack) * kLanes);
    Run<T, kLanes> others;
    if (residual) others = load_run<kLanes>(residual + place);
    float values[kLanes];
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      const float added = residual ? as_float(others.lanes[i]) : 0.0f;
      float value = as_float(sums.lanes[i]) * scale[output] + shift[output];
      if (add_first) value += added;
      value = value < 0.0f ? 0.0f : value;
      values[i] = add_first ? value : value + added;
    }
    store_run<kLanes>(y + place, rounded<T>(values));
  }
}
"""


def lanes_of(height, width, itemsize):
    """Neighbouring pixels of a thread, and those that it reads at once under a tap of another row."""
    lanes = math.gcd(height * width, 16 // itemsize)
    return lanes, math.gcd(width, lanes)


class Kernels:
    """Both kernels for planes of a size in a dtype, compiled once: for packs, and for arrays that are not aligned."""

    def __init__(self, dtype, height, width):
        lanes, load = lanes_of(height, width, dtype.itemsize)
        names = {}
        for some, at_once in ((1, 1), (lanes, load)):
            names["columns", some] = f"write_columns<{WORDS[dtype.itemsize]}, {some}, {at_once}>"
            names["finish", some] = f"finish<{C_TYPES[dtype.name]}, {some}>"
        texts = tuple(names.values())
        module = cupy.RawModule(code=CONVERSIONS + RUNS + SOURCE, options=("-std=c++17",), name_expressions=texts)
        self._functions = {key: module.get_function(name) for key, name in names.items()}
        self._lanes = lanes

    def columns(self, x, planes):
        """[9C, N·H·W] of x, [N, C, H, W] or a product's [C, N·H·W]; ``planes`` is (N, C, H, W)."""
        images, channels, height, width = planes
        plane = height * width
        columns = cupy.empty((channels * 9, images * plane), dtype=x.dtype)
        strides = (channels * plane, plane) if x.ndim == 4 else (plane, images * plane)
        sizes = (numpy.int32(channels), numpy.uint32(plane), numpy.int32(width), *map(numpy.int64, strides))
        self._launch("columns", (x, columns), (x, columns), images * plane, channels, sizes)
        return columns

    def finish(self, product, planes, scale, shift, residual=None, add_first=False, as_images=True):
        """relu(product · scale + shift): [N, O, H, W] where ``as_images``, else in the layout of the product."""
        images, _, height, width = planes
        outputs, pixels = product.shape
        plane = height * width
        y = cupy.empty((images, outputs, height, width) if as_images else product.shape, dtype=product.dtype)
        strides = (outputs * plane, plane) if as_images else (plane, pixels)
        sizes = (numpy.int32(outputs), numpy.uint32(plane), *map(numpy.int64, strides), numpy.int32(add_first))
        moved = (product, y) if residual is None else (product, residual, y)
        added = numpy.uint64(0) if residual is None else residual
        self._launch("finish", moved, (product, scale, shift, added, y), pixels, outputs, sizes)
        return y

    def _launch(self, name, moved, arrays, pixels, channels, sizes):
        """``moved`` are those of the arrays that the kernel takes by packs, if all of them begin at one."""
        lanes = self._lanes if all(array.data.ptr % 16 == 0 for array in moved) else 1
        packs = pixels // lanes
        if packs and channels:
            grid = (-(-packs // THREADS), min(channels, MOST_DOWN))
            self._functions[name, lanes](grid, (THREADS,), (*arrays, numpy.uint32(packs), *sizes))


def as_matrix(filters):
    """[O, C, k, k] → [O, C·k·k], in the order of ``Kernels.columns``."""
    return cupy.ascontiguousarray(filters.reshape(filters.shape[0], -1))
