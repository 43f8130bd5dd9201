// Matrix products with a fused epilogue, one or several of one shape in a launch: what the operators built on a product
// share. A file that includes this gets, for a `.cu` of its own,
//
//   Operands<kProblems, kSides> p = operands_of<kProblems, kSides>(left, right, name);
//   multiply(p, name, [&](auto zero) { return Bias<decltype(zero)>{...}; });      // p.c[problem] holds the results
//
// C_i = epilogue(A_i · B_i) for kProblems products of [m, k] by [k, n], row-major, in float32, float16 or bfloat16,
// with sums in float32 (never TF32). With kSides = 2 each product has two right factors, and the epilogue makes one
// result of both sums: SwiGLU without either in memory. The epilogue is built for the operands' scalar type by a
// function of a value of that type; product_epilogue.cuh says what it is, and has the usual ones.
//
// float32 goes to the CUDA cores (product_fma.cuh). 16-bit types go to wgmma (product_wgmma.cuh) on Hopper where rows
// are multiples of 16 bytes, else to mma.sync (product_mma.cuh), which takes every size.
#pragma once

#include <type_traits>

#include "float_dispatch.cuh"
#include "product_epilogue.cuh"
#include "product_fma.cuh"
#include "product_mma.cuh"
#include "product_operands.cuh"
#include "product_wgmma.cuh"

namespace groundspeed {

template <typename T, int kProblems, int kSides, typename Epilogue>
void multiply_typed(const Operands<kProblems, kSides>& p, const Epilogue& epilogue, const char* name) {
  static_assert(Epilogue::kSides == kSides, "the epilogue joins another number of sums");
  const auto at = pointers_of<T>(p);
  const bool aligned = rows_aligned<16>(p, at) && epilogue.aligned();
  if constexpr (std::is_same_v<T, float>) {
    multiply_fma(p, at, epilogue, aligned, name);
  } else {
    if (!aligned) return multiply_mma<false>(p, at, epilogue, name);
    p.k > 0 && is_hopper() ? multiply_wgmma(p, at, epilogue, name) : multiply_mma<true>(p, at, epilogue, name);
  }
}

// Launches one kernel on torch's current stream; nothing where there is nothing to write.
template <int kProblems, int kSides, typename MakeEpilogue>
void multiply(const Operands<kProblems, kSides>& p, const char* name, const MakeEpilogue& make_epilogue) {
  if (p.c[0].numel() == 0) return;
  dispatch_float(p.a[0], name, [&](auto zero) { multiply_typed<decltype(zero)>(p, make_epilogue(zero), name); });
  check_launch(name);
}

}  // namespace groundspeed
