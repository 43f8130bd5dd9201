"""A convolution as cuBLAS sees one: the pixels under each tap written out (im2col), a matrix product, a pass over it.

Pixels q = n·H·W + h·W + w are numbered over all images, so that a batch is one product, [O, C·k·k] by [C·k·k, q]. An
array of planes is given with two strides, from image to image and from channel to channel: [N, C, H, W] and a product's
[C, N·H·W] differ in nothing else.
"""

import cupy
import numpy

from .dtypes import C_TYPES, CONVERSIONS

THREADS = 256

SOURCE = r"""
// columns [C · SIDE · SIDE, N · H · W]; a thread writes the taps of one pixel of one channel
template <typename T, int SIDE>
__global__ void write_columns(const T* __restrict__ x, T* __restrict__ columns, long long images, long long channels,
                              int height, int width, long long image_stride, long long channel_stride) {
  const long long plane = static_cast<long long>(height) * width, pixels = images * plane;
  const long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= channels * pixels) return;
  const long long channel = at / pixels, pixel = at % pixels;
  const int in_plane = static_cast<int>(pixel % plane), row = in_plane / width, column = in_plane % width;
  const T* source = x + pixel / plane * image_stride + channel * channel_stride + in_plane;
  T* target = columns + channel * (SIDE * SIDE) * pixels + pixel;
#pragma unroll
  for (int tap = 0; tap < SIDE * SIDE; ++tap) {
    const int down = tap / SIDE - SIDE / 2, right = tap % SIDE - SIDE / 2;
    const int r = row + down, c = column + right;
    const bool inside = r >= 0 && r < height && c >= 0 && c < width;
    if (inside) target[tap * pixels] = source[static_cast<long long>(down) * width + right];
    else put(target + tap * pixels, 0.0f);
  }
}

// y = relu(product · scale + shift), product [O, N · H · W]; a residual laid out as y is added before or after the ReLU
template <typename T>
__global__ void finish(const T* __restrict__ product, const float* __restrict__ scale, const float* __restrict__ shift,
                       const T* __restrict__ residual, T* __restrict__ y, long long outputs, long long pixels,
                       long long plane, long long image_stride, long long channel_stride, int add_first) {
  const long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= outputs * pixels) return;
  const long long output = at / pixels, pixel = at % pixels;
  const long long place = pixel / plane * image_stride + output * channel_stride + pixel % plane;
  float value = as_float(product[at]) * scale[output] + shift[output];
  const float added = residual ? as_float(residual[place]) : 0.0f;
  if (add_first) value += added;
  value = value < 0.0f ? 0.0f : value;
  put(y + place, add_first ? value : value + added);
}
"""


class Kernels:
    """The two kernels for a dtype, compiled once."""

    def __init__(self, dtype):
        name = C_TYPES[dtype.name]
        columns = {side: f"write_columns<{name}, {side}>" for side in (1, 3)}
        finish = f"finish<{name}>"
        names = (*columns.values(), finish)
        module = cupy.RawModule(code=CONVERSIONS + SOURCE, options=("-std=c++17",), name_expressions=names)
        self._columns = {side: module.get_function(text) for side, text in columns.items()}
        self._finish = module.get_function(finish)

    def columns(self, x, planes, side):
        """[C·side², N·H·W] of x, [N, C, H, W] or a product's [C, N·H·W]; ``planes`` is (N, C, H, W)."""
        images, channels, height, width = planes
        plane = height * width
        columns = cupy.empty((channels * side * side, images * plane), dtype=x.dtype)
        strides = (channels * plane, plane) if x.ndim == 4 else (plane, images * plane)
        counts = (numpy.int64(images), numpy.int64(channels), numpy.int32(height), numpy.int32(width))
        arguments = (x, columns, *counts, *map(numpy.int64, strides))
        self._columns[side]((-(-x.size // THREADS),), (THREADS,), arguments)
        return columns

    def finish(self, product, planes, scale, shift, residual=None, add_first=False, as_images=True):
        """relu(product · scale + shift): [N, O, H, W] where ``as_images``, else in the layout of the product."""
        images, _, height, width = planes
        outputs, pixels = product.shape
        plane = height * width
        y = cupy.empty((images, outputs, height, width) if as_images else product.shape, dtype=product.dtype)
        strides = (outputs * plane, plane) if as_images else (plane, pixels)
        none = numpy.uint64(0)
        arguments = (product, scale, shift, none if residual is None else residual, y)
        numbers = map(numpy.int64, (outputs, pixels, plane, *strides))
        grid = (-(-product.size // THREADS),)
        self._finish(grid, (THREADS,), (*arguments, *numbers, numpy.int32(add_first)))
        return y


def as_matrix(filters):
    """[O, C, k, k] → [O, C·k·k], in the order of ``Kernels.columns``."""
    return cupy.ascontiguousarray(filters.reshape(filters.shape[0], -1))
