// Seven launches: norm, one projection, flash attention, a product with its residual, norm, product and GELU, product.
//
// With n = B·S·D elements and F = 4D: norms 4n, projection 4n, attention 4n, output projection with the residual 3n,
// the MLP's products 11n with GELU and residual in their epilogues: 26n, and scores never leave the chip.
// Compute-bound in the products, which are wgmma's, as is attention (../_cuda/product_wgmma.cuh,
// ../_cuda/flash_wgmma.cuh): sm_90 only. Queries, keys and values are read where the projection left them, and
// attention writes its output as the next product reads it, heads side by side.
//
// At batch 1 a product of 512 rows and 1024 columns has 32 tiles for 132 multiprocessors. Where that is so the MLP is
// computed in four parts of F, which lie in memory one after the other: the first product writes four matrices, the
// second multiplies each by its rows of `down` in one grouped launch, and an eighth kernel adds them up, 6n more.
//
// Predicted for D = 1024, S = 512 in 16 bits, from 4.3 TB/s and 90 % of 770 TFLOP/s in the products: at batch 8 eager
// takes 145 µs to multiply, 125 µs for its passes over 67 MB of scores, and 45 µs for other passes that this one does
// not make: 315 µs against 175 µs, 1.8 times; at batch 32 the same ratio. At batch 1 every kernel is short and the 15
// launches less count, some 1.5 µs each: 1.6 times.
//
// Reached on nvidia-h200 at 968ac8c4: 892 µs for bfloat16 B=32,S=512,D=1024,H=16,F=4096, 482 TFLOP/s, 62 % of the
// compute ceiling, 2.40 times as fast as torch_eager.
#include "../_cuda/flash_wgmma.cuh"
#include "../_cuda/product_epilogue.cuh"
#include "../_cuda/product_wgmma.cuh"
#include "layer_norm.cuh"

namespace {

using namespace groundspeed;

constexpr char kName[] = "transformer_layer/cuda_fused";
constexpr int kMlpParts = 4;
constexpr int kSumThreads = 128;

struct Norm {
  Tensor weight;
  Tensor bias;
};

struct Linear {
  Tensor weight;
  Tensor bias;
};

// x·W + bias, then GELU, or a residual, or nothing: one functor for all products, so that they share a kernel.
template <typename T>
struct LayerEnd : Bias<T> {
  template <int kCount>
  using Columns = typename Bias<T>::template Columns<kCount>;

  const T* residual;  // null where there is none
  int n;
  bool with_gelu;

  bool aligned() const { return is_aligned16(this->bias) && is_aligned16(residual); }

  template <bool kAligned, int kCount>
  __device__ __forceinline__ void apply(const Columns<kCount>& columns, int, int row, int column,
                                        float (&values)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] += columns.bias[i];
    if (with_gelu) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] = gelu(values[i]);
    }
    if (residual != nullptr) {
      float added[kCount];
      load_run<kAligned>(residual + static_cast<int64_t>(row) * n + column, added);
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] += added[i];
    }
  }
};

// kParts products of one shape in a launch: x[i]·weight[i] + bias[i], bias [kParts, n].
template <typename T, int kParts>
std::array<Tensor, kParts> linears(const std::array<Tensor, kParts>& x, const std::array<Tensor, kParts>& weight,
                                   const Tensor& bias, const Tensor* residual, bool with_gelu) {
  std::array<std::array<Tensor, 1>, kParts> right;
  for (int part = 0; part < kParts; ++part) right[part] = {weight[part]};
  const auto p = operands_of<kParts, 1>(x, right, kName);
  const auto at = pointers_of<T>(p);
  STD_TORCH_CHECK(bias.numel() == kParts * p.n, kName, ": expected a bias for each of ", kParts * p.n, " columns");
  LayerEnd<T> end;
  end.bias = input_pointer<T>(bias);
  end.residual = residual == nullptr ? nullptr : input_pointer<T>(*residual);
  end.n = static_cast<int>(p.n);
  end.with_gelu = with_gelu;
  STD_TORCH_CHECK(rows_aligned<16>(p, at) && end.aligned(), kName, ": expected rows in multiples of 16 bytes");
  multiply_wgmma(p, at, end, kName);
  check_launch(kName);
  return p.c;
}

template <typename T>
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor* residual, bool with_gelu) {
  return linears<T, 1>({x}, {weight}, bias, residual, with_gelu)[0];
}

template <typename T>
struct Parts {
  const T* part[kMlpParts];
};

// y = residual + the sum of the parts, all [m, n] and multiples of 16 bytes.
template <typename T>
__global__ void __launch_bounds__(kSumThreads)
    sum_parts(Parts<T> parts, const T* __restrict__ residual, T* __restrict__ y, int64_t packs) {
  constexpr int kLanes = FloatPack<T>::kLanes;
  const int64_t at = global_thread();
  if (at >= packs) return;
  float sums[kLanes];
  load_lanes(residual + at * kLanes, sums);
#pragma unroll
  for (int i = 0; i < kMlpParts; ++i) {
    float added[kLanes];
    load_lanes(parts.part[i] + at * kLanes, added);
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += added[lane];
  }
  store_lanes(y + at * kLanes, sums);
}

// h + gelu(x·up + b)·down + b, in kMlpParts parts of the columns of `up` and rows of `down`.
template <typename T>
Tensor mlp_in_parts(const Tensor& x, const Tensor& h, const Linear& up, const Linear& down) {
  std::array<Tensor, kMlpParts> inputs, ups, downs;
  for (int part = 0; part < kMlpParts; ++part) {
    inputs[part] = x;
    ups[part] = torch::stable::select(up.weight, 0, part);
    downs[part] = torch::stable::select(down.weight, 0, part);
  }
  const auto activated = linears<T, kMlpParts>(inputs, ups, up.bias, nullptr, true);
  const auto partial = linears<T, kMlpParts>(activated, downs, down.bias, nullptr, false);
  Parts<T> parts;
  for (int part = 0; part < kMlpParts; ++part) parts.part[part] = input_pointer<T>(partial[part]);
  const Tensor y = torch::stable::empty_like(h);
  const int64_t packs = h.numel() / FloatPack<T>::kLanes;
  const auto kernel = sum_parts<T>;
  kernel<<<covering_grid(packs, kSumThreads), kSumThreads, 0, current_stream(h)>>>(parts, input_pointer<T>(h),
                                                                                  output_pointer<T>(y), packs);
  check_launch(kName);
  return y;
}

// projected [B·S, 3D], heads side by side in each third, attended: [B·S, D], heads side by side.
template <typename T>
Tensor attend(const Tensor& projected, int64_t batches, int64_t length, int64_t heads) {
  const int64_t size = projected.size(1) / (3 * heads);
  const Tensor parts = torch::stable::view(projected, {batches, length, 3, heads, size});
  const auto part = [&](int64_t which) {
    return torch::stable::transpose(torch::stable::select(parts, 2, which), 1, 2);
  };
  const Tensor together = torch::stable::new_empty(projected, {batches, length, heads, size});
  const AttentionOperands operands = {part(0),
                                      part(1),
                                      part(2),
                                      torch::stable::transpose(together, 1, 2),
                                      batches,
                                      static_cast<int>(heads),
                                      static_cast<int>(length),
                                      static_cast<int>(size)};
  const cudaStream_t stream = current_stream(projected);
  size == 64 ? launch_flash_wgmma<T, 64>(operands, true, stream, kName)
             : launch_flash_wgmma<T, 128>(operands, true, stream, kName);
  check_launch(kName);
  return torch::stable::view(together, {batches * length, heads * size});
}

template <typename T>
Tensor layer(const Tensor& x, const Norm& norm1, const Linear& projection, const Linear& output, const Norm& norm2,
             const Linear& up, const Linear& down, int64_t heads) {
  const Tensor rows = torch::stable::view(x, {x.size(0) * x.size(1), x.size(2)});
  const Tensor normed = layer_norm<T>(rows, norm1.weight, norm1.bias, kName);
  const Tensor projected = linear<T>(normed, projection.weight, projection.bias, nullptr, false);
  const Tensor attended = attend<T>(projected, x.size(0), x.size(1), heads);
  const Tensor h = linear<T>(attended, output.weight, output.bias, &rows, false);
  const Tensor again = layer_norm<T>(h, norm2.weight, norm2.bias, kName);
  const auto mlp = [&] {
    if (up.weight.size(0) == kMlpParts) return mlp_in_parts<T>(again, h, up, down);
    const Tensor activated =
        linear<T>(again, torch::stable::select(up.weight, 0, 0), up.bias, nullptr, true);
    return linear<T>(activated, torch::stable::select(down.weight, 0, 0), down.bias, &h, false);
  };
  return torch::stable::view(mlp(), {x.size(0), x.size(1), x.size(2)});
}

// `up` [parts, D, F / parts], `down` [parts, F / parts, D], and with parts their biases: 1 or kMlpParts.
Tensor run(Tensor input, Tensor norm1_weight, Tensor norm1_bias, Tensor projection, Tensor projection_bias,
           Tensor output, Tensor output_bias, Tensor norm2_weight, Tensor norm2_bias, Tensor up, Tensor up_bias,
           Tensor down, Tensor down_bias, int64_t heads) {
  STD_TORCH_CHECK(is_hopper(), kName, ": wgmma exists on compute capability 9.0 only");
  const Tensor x = torch::stable::contiguous(input);
  STD_TORCH_CHECK(x.dim() == 3 && heads > 0 && (x.size(2) == heads * 64 || x.size(2) == heads * 128), kName,
                  ": expected x [B, S, D] and heads of 64 or 128");
  STD_TORCH_CHECK(up.dim() == 3 && (up.size(0) == 1 || up.size(0) == kMlpParts), kName, ": expected up and down in 1 or ",
                  kMlpParts, " parts");
  if (x.numel() == 0) return torch::stable::empty_like(x);
  const auto of_type = [&](auto zero) {
    return layer<decltype(zero)>(x, {norm1_weight, norm1_bias}, {projection, projection_bias}, {output, output_bias},
                                 {norm2_weight, norm2_bias}, {up, up_bias}, {down, down_bias}, heads);
  };
  switch (x.scalar_type()) {
    case ScalarType::Half:
      return of_type(__half{});
    case ScalarType::BFloat16:
      return of_type(__nv_bfloat16{});
    default:
      STD_TORCH_CHECK(false, kName, ": expected float16 or bfloat16");
  }
}

}  // namespace

GROUNDSPEED_OPERATOR(
    "run(Tensor x, Tensor norm1_weight, Tensor norm1_bias, Tensor projection, Tensor projection_bias, Tensor output, "
    "Tensor output_bias, Tensor norm2_weight, Tensor norm2_bias, Tensor up, Tensor up_bias, Tensor down, "
    "Tensor down_bias, int heads) -> Tensor",
    run)
