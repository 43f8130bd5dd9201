// What happens to the sums of a product on their way out: the epilogues that product.cuh's kernels take as a functor.
//
// An epilogue is a struct, handed to the kernel by value, with
//
//   static constexpr int kSides;     1, or 2 where it joins the sums of two right factors into one result
//   bool aligned() const;            on the host: whether its own operands start at multiples of 16 bytes; their rows
//                                    have n elements, so where the product's rows are aligned theirs are too
//   template <int kCount> Columns    what it keeps of kCount neighbouring columns
//   Columns<kCount> columns<kAligned, kCount>(problem, column, n)
//                                    loads that, once for all the rows in which a thread has these columns
//   void apply<kAligned, kCount>(columns, problem, row, column, float (&values)[kCount])
//   void apply<kAligned, kCount>(columns, problem, row, column, float (&values)[kCount], const float (&others)[kCount])
//                                    the second where kSides = 2; what it leaves in `values` is rounded and stored
//
// kCount neighbours of a row are inside the matrix always; if kAligned, `column` and n are multiples of kCount and
// the epilogue's operands may be read kCount elements at a time. `problem` is the number of the product in a grouped
// launch.
//
// The wgmma kernel rounds sums to the output's type before it applies an epilogue, as operators that are not fused
// round them; the other kernels apply it to the float32 sums.
#pragma once

#include "activation.cuh"
#include "float_pack.cuh"

namespace groundspeed {

// kCount neighbours as floats, in one access where the address is a multiple of their size.
template <bool kAligned, int kCount, typename T>
__device__ __forceinline__ void load_run(const T* __restrict__ place, float (&values)[kCount]) {
  if constexpr (kAligned && kCount * sizeof(T) == 16) {
    const FloatPack<T> pack = load_pack(place);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = to_float(pack.lanes[i]);
  } else {
    struct alignas(kAligned ? kCount * sizeof(T) : sizeof(T)) Run {
      T lanes[kCount];
    };
    const Run run = *reinterpret_cast<const Run*>(place);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = to_float(run.lanes[i]);
  }
}

// What an epilogue without operands of its own per column keeps of it.
struct NoColumns {
  template <int kCount>
  struct Columns {};

  bool aligned() const { return true; }

  template <bool kAligned, int kCount>
  __device__ __forceinline__ Columns<kCount> columns(int, int, int) const {
    return {};
  }
};

// The sums as they are.
struct Store : NoColumns {
  static constexpr int kSides = 1;

  template <bool kAligned, int kCount>
  __device__ __forceinline__ void apply(const Columns<kCount>&, int, int, int, float (&)[kCount]) const {}
};

// Adds bias [problems, n].
template <typename T>
struct Bias {
  static constexpr int kSides = 1;
  template <int kCount>
  struct Columns {
    float bias[kCount];
  };

  const T* bias;

  bool aligned() const { return is_aligned16(bias); }

  template <bool kAligned, int kCount>
  __device__ __forceinline__ Columns<kCount> columns(int problem, int column, int n) const {
    Columns<kCount> found;
    load_run<kAligned>(bias + static_cast<int64_t>(problem) * n + column, found.bias);
    return found;
  }

  template <bool kAligned, int kCount>
  __device__ __forceinline__ void apply(const Columns<kCount>& columns, int, int, int, float (&values)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] += columns.bias[i];
  }
};

// GELU by the error function of a product with a bias [problems, n].
template <typename T>
struct BiasGelu : Bias<T> {
  template <int kCount>
  using Columns = typename Bias<T>::template Columns<kCount>;

  template <bool kAligned, int kCount>
  __device__ __forceinline__ void apply(const Columns<kCount>& columns, int, int, int, float (&values)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = gelu(values[i] + columns.bias[i]);
  }
};

// Adds residual [m, n]: the end of a block of a network.
template <typename T>
struct Residual : NoColumns {
  static constexpr int kSides = 1;

  const T* residual;
  int n;

  bool aligned() const { return is_aligned16(residual); }

  template <bool kAligned, int kCount>
  __device__ __forceinline__ void apply(const Columns<kCount>&, int, int row, int column,
                                        float (&values)[kCount]) const {
    float added[kCount];
    load_run<kAligned>(residual + static_cast<int64_t>(row) * n + column, added);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] += added[i];
  }
};

// Adds bias [problems, n] and residual [m, n].
template <typename T>
struct BiasResidual : Bias<T> {
  template <int kCount>
  using Columns = typename Bias<T>::template Columns<kCount>;

  const T* residual;
  int n;

  bool aligned() const { return is_aligned16(this->bias) && is_aligned16(residual); }

  template <bool kAligned, int kCount>
  __device__ __forceinline__ void apply(const Columns<kCount>& columns, int, int row, int column,
                                        float (&values)[kCount]) const {
    float added[kCount];
    load_run<kAligned>(residual + static_cast<int64_t>(row) * n + column, added);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] += columns.bias[i] + added[i];
  }
};

// silu(gate) · up, where gate = A·B of the first right factor and up that of the second: the gate of a SwiGLU block.
struct SwiGlu : NoColumns {
  static constexpr int kSides = 2;

  template <bool kAligned, int kCount>
  __device__ __forceinline__ void apply(const Columns<kCount>&, int, int, int, float (&gate)[kCount],
                                        const float (&up)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) gate[i] = gate[i] * sigmoid(gate[i]) * up[i];
  }
};

}  // namespace groundspeed
