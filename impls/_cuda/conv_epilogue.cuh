// What follows a convolution in its own kernel: a scale and a shift for each output channel (batch normalisation, or a
// bias), ReLU, and a residual added before or after it.
#pragma once

#include "conv_window.cuh"
#include "float_pack.cuh"

namespace groundspeed {

enum class ConvEnd { kRelu, kReluAdd, kAddRelu };

template <typename T>
struct ConvEpilogue {
  const float* scale;  // [outputs]
  const float* shift;  // [outputs]
  const T* residual;   // [images, outputs, height, width]; not read for kRelu
  T* y;                // likewise, written
  ConvEnd end;
};

// `sum` is the convolution's, `added` the residual's, 0 where there is none. Without branches: a ReLU that does not
// apply compares with minus infinity. NaN stays NaN.
__device__ __forceinline__ float conv_end(ConvEnd end, float sum, float scale, float shift, float added) {
  const float never = __int_as_float(0xff800000);
  float value = fmaf(sum, scale, shift);
  value = value < (end == ConvEnd::kAddRelu ? never : 0.0f) ? 0.0f : value;
  value += added;
  return value < (end == ConvEnd::kAddRelu ? 0.0f : never) ? 0.0f : value;
}

// One element of the result; `offset` is its place in y.
template <typename T>
__device__ __forceinline__ void put_one(const ConvEpilogue<T>& out, int64_t offset, float sum, float scale,
                                        float shift) {
  const float added = out.end == ConvEnd::kRelu ? 0.0f : to_float(out.residual[offset]);
  out.y[offset] = from_float<T>(conv_end(out.end, sum, scale, shift, added));
}

template <typename T>
struct alignas(8) FourHalves {
  T lanes[4];
};

// Four neighbours of a plane; `offset` is a multiple of 4, residual and y are 8-byte aligned, T has 16 bits.
template <typename T>
__device__ __forceinline__ uint2 read_four(const ConvEpilogue<T>& out, int64_t offset) {
  return *reinterpret_cast<const uint2*>(out.residual + offset);
}

template <typename T>
__device__ __forceinline__ void put_four(const ConvEpilogue<T>& out, int64_t offset, const float (&sums)[4],
                                         float scale, float shift, uint2 residual) {
  const FourHalves<T> added = *reinterpret_cast<const FourHalves<T>*>(&residual);
  FourHalves<T> result;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    result.lanes[i] = from_float<T>(conv_end(out.end, sums[i], scale, shift, to_float(added.lanes[i])));
  }
  *reinterpret_cast<uint2*>(out.y + offset) = *reinterpret_cast<const uint2*>(&result);
}

}  // namespace groundspeed
