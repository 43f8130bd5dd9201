// Padding to a fourth channel in a kernel of its own, so that the second kernel reads a pixel by one vector.
//
// Bound by memory: the images are data, so padding them is run time: 3 elements read and 4 written a pixel, then 4
// read and 3 written, 14 where 6 must move, and a buffer of 4/3 the input. Prediction: well over twice the time of
// cuda_vec; padding pays only where the images arrive padded.
//
// Reached on nvidia-h200 at 968ac8c4: 3.55 ms for float32 N=1024,H=512,W=512, 1.81 TB/s, 42 % of the memory ceiling,
// 5.01 times as fast as torch_eager.
#include "color.cuh"

namespace {

using namespace groundspeed;

// Four channels of one pixel: 16 bytes of float32, 8 of a 16-bit type, in one access.
template <typename T>
struct alignas(4 * sizeof(T)) PaddedPixel {
  T channel[4];
};

template <typename T>
__global__ void pad_channels(const T* __restrict__ x, PaddedPixel<T>* __restrict__ padded, int64_t pixels) {
  const int64_t pixel = global_thread();
  if (pixel >= pixels) return;
  const T* in = x + kChannels * pixel;
  padded[pixel] = PaddedPixel<T>{{in[0], in[1], in[2], from_float<T>(0.0f)}};
}

template <typename T>
__global__ void normalize_color_padded(
    const PaddedPixel<T>* __restrict__ padded, const float* __restrict__ weights, T* __restrict__ y, int64_t pixels) {
  const int64_t pixel = global_thread();
  if (pixel >= pixels) return;
  const PaddedPixel<T> in = padded[pixel];
  transform_pixel(load_affine(weights), in.channel, y + kChannels * pixel);
}

Tensor run(Tensor x, Tensor weights) {
  check_channels(x);
  const float* folded = affine_weights(weights);
  return elementwise(x, "normalize_color_padded", [&](const auto* in, auto* out, int64_t size, cudaStream_t stream) {
    using T = std::remove_pointer_t<decltype(out)>;
    const int64_t pixels = size / kChannels;
    const int64_t padded_shape[] = {pixels, 4};
    const Tensor buffer = torch::stable::new_empty(x, {padded_shape, 2});
    auto* padded = static_cast<PaddedPixel<T>*>(buffer.mutable_data_ptr());
    const unsigned int grid = covering_grid(pixels, kBlock);
    pad_channels<<<grid, kBlock, 0, stream>>>(in, padded, pixels);
    check_launch("pad_channels");
    normalize_color_padded<T><<<grid, kBlock, 0, stream>>>(padded, folded, out, pixels);
  });
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, Tensor weights) -> Tensor", run)
