// The host side of a transpose: the output, and pointers to the bits of elements.
#pragma once

#include "../_cuda/elementwise.cuh"
#include "../_cuda/transpose_tile.cuh"

namespace groundspeed {

// Calls launch(x, y, rows, columns, stream) for x [rows, columns] and returns y [columns, rows].
template <typename Launch>
Tensor transposed(const Tensor& input, const char* kernel, Launch&& launch) {
  STD_TORCH_CHECK(input.dim() == 2, kernel, ": expected [M, N], got ", input.dim(), " dimensions");
  const Tensor x = torch::stable::contiguous(input);
  const int64_t rows = x.size(0), columns = x.size(1);
  const int64_t shape[] = {columns, rows};
  Tensor y = torch::stable::new_empty(x, {shape, 2});
  if (x.numel() == 0) return y;
  dispatch_float(x, kernel, [&](auto tag) {
    using Word = Bits<decltype(tag)>;
    launch(input_pointer<Word>(x), output_pointer<Word>(y), rows, columns, current_stream(x));
  });
  check_launch(kernel);
  return y;
}

}  // namespace groundspeed
