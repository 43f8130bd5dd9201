// The operands of one or several matrix products of one shape as kernels need them: checked, contiguous, with room for
// the results.
#pragma once

#include <array>

#include "../matmul/product.cuh"  // multiprocessors()
#include "float_pack.cuh"
#include "torch_stable.cuh"

namespace groundspeed {

// kProblems products that one launch computes. With kSides = 2 each has two right factors of one shape, and its kernel
// holds both sums of an element in one thread.
template <int kProblems, int kSides>
struct Operands {
  std::array<Tensor, kProblems> a;                      // [m, k], row-major
  std::array<std::array<Tensor, kSides>, kProblems> b;  // [k, n], row-major
  std::array<Tensor, kProblems> c;                      // [m, n], row-major, uninitialised
  int64_t m;
  int64_t n;
  int64_t k;
};

// A contiguous [rows, columns] of `like`'s dtype, copied where it is not contiguous.
inline Tensor factor_of(const Tensor& factor, const Tensor& like, int64_t rows, int64_t columns, const char* name) {
  STD_TORCH_CHECK(factor.scalar_type() == like.scalar_type(), name, ": expected factors of one dtype");
  STD_TORCH_CHECK(factor.dim() == 2 && factor.size(0) == rows && factor.size(1) == columns, name,
                  ": expected factors of one shape, here [", rows, ", ", columns, "]");
  return torch::stable::contiguous(factor);
}

inline Tensor result_like(const Tensor& like, int64_t rows, int64_t columns) {
  return torch::stable::new_empty(like, {rows, columns});
}

// Raises for another dtype or shape than that of the first left and right factor.
template <int kProblems, int kSides>
Operands<kProblems, kSides> operands_of(const std::array<Tensor, kProblems>& left,
                                        const std::array<std::array<Tensor, kSides>, kProblems>& right,
                                        const char* name) {
  const Tensor& first = left[0];
  const Tensor& second = right[0][0];
  STD_TORCH_CHECK(first.dim() == 2 && second.dim() == 2 && first.size(1) == second.size(0), name,
                  ": expected matrices [M, K] and [K, N]");
  constexpr int64_t kLongest = 1ll << 30;  // kernels count rows, columns and K in int, offsets in int64_t
  Operands<kProblems, kSides> found;
  found.m = first.size(0);
  found.n = second.size(1);
  found.k = first.size(1);
  STD_TORCH_CHECK(found.m < kLongest && found.n < kLongest && found.k < kLongest, name,
                  ": expected M, N and K below 2^30");
  for (int problem = 0; problem < kProblems; ++problem) {
    found.a[problem] = factor_of(left[problem], first, found.m, found.k, name);
    for (int side = 0; side < kSides; ++side) {
      found.b[problem][side] = factor_of(right[problem][side], first, found.k, found.n, name);
    }
    found.c[problem] = result_like(first, found.m, found.n);
  }
  return found;
}

// The same as plain pointers, as a kernel takes them.
template <typename T, int kProblems, int kSides>
struct Pointers {
  const T* a[kProblems];
  const T* b[kProblems][kSides];
  T* c[kProblems];
};

template <typename T, int kProblems, int kSides>
Pointers<T, kProblems, kSides> pointers_of(const Operands<kProblems, kSides>& p) {
  Pointers<T, kProblems, kSides> found;
  for (int problem = 0; problem < kProblems; ++problem) {
    found.a[problem] = static_cast<const T*>(p.a[problem].data_ptr());
    for (int side = 0; side < kSides; ++side) {
      found.b[problem][side] = static_cast<const T*>(p.b[problem][side].data_ptr());
    }
    found.c[problem] = static_cast<T*>(p.c[problem].data_ptr());
  }
  return found;
}

// Whether rows may be read and written kBytes at a time: their lengths and every base address are multiples of it.
template <int kBytes, typename T, int kProblems, int kSides>
bool rows_aligned(const Operands<kProblems, kSides>& p, const Pointers<T, kProblems, kSides>& at) {
  constexpr int kElements = kBytes / static_cast<int>(sizeof(T));
  const auto on_grid = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % kBytes == 0; };
  bool aligned = p.n % kElements == 0 && p.k % kElements == 0;
  for (int problem = 0; problem < kProblems; ++problem) {
    aligned = aligned && on_grid(at.a[problem]) && on_grid(at.c[problem]);
    for (int side = 0; side < kSides; ++side) aligned = aligned && on_grid(at.b[problem][side]);
  }
  return aligned;
}

inline int64_t tiles_of(int64_t length, int tile) { return (length + tile - 1) / tile; }

}  // namespace groundspeed
