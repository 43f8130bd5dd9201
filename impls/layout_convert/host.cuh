// The host side of a layout conversion: images as matrices to transpose, the output, pointers to the bits of elements.
#pragma once

#include "../_cuda/elementwise.cuh"
#include "../_cuda/transpose_tile.cuh"

namespace groundspeed {

// Calls launch(x, y, images, rows, columns, stream) for images of x [rows, columns] to be turned to [columns, rows].
template <typename Launch>
Tensor converted(const Tensor& input, bool to_nhwc, const char* kernel, Launch&& launch) {
  STD_TORCH_CHECK(input.dim() == 4, kernel, ": expected four dimensions, got ", input.dim());
  const Tensor x = torch::stable::contiguous(input);
  const int64_t a = x.size(1), b = x.size(2), c = x.size(3);
  const int64_t to_nhwc_shape[] = {x.size(0), b, c, a};
  const int64_t to_nchw_shape[] = {x.size(0), c, a, b};
  Tensor y = torch::stable::new_empty(x, {to_nhwc ? to_nhwc_shape : to_nchw_shape, 4});
  if (x.numel() == 0) return y;
  const int64_t rows = to_nhwc ? a : a * b, columns = to_nhwc ? b * c : c;
  dispatch_float(x, kernel, [&](auto tag) {
    using Word = Bits<decltype(tag)>;
    launch(input_pointer<Word>(x), output_pointer<Word>(y), x.size(0), rows, columns, current_stream(x));
  });
  check_launch(kernel);
  return y;
}

}  // namespace groundspeed
