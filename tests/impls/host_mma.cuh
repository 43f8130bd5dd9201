// In the place of impls/_cuda/mma.cuh: the same functions, done by host_warps.h. Shared memory begins at address 0.
#pragma once

#include "host_warps.h"

namespace groundspeed {

inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(static_cast<const unsigned char*>(pointer) - host::shared);
}

inline void copy_async16(uint32_t destination, const void* source, bool inside) {
  host::copy_async(destination, source, inside);
}

inline void commit_copies() { ++host::current->groups; }

template <int kPending>
void wait_copies() {
  host::wait_copies(kPending);
}

inline void load_matrices(uint32_t (&out)[4], uint32_t row_address) {
  host::at_warp({host::kLoad, row_address, 0, out});
}

inline void load_matrices_transposed(uint32_t (&out)[4], uint32_t row_address) {
  host::at_warp({host::kLoadTransposed, row_address, 0, out});
}

template <typename T>
void multiply_accumulate(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  constexpr bool kHalf = std::is_same_v<T, __half>;
  host::at_warp({kHalf ? host::kMultiplyHalf : host::kMultiplyBfloat16, 0, 0, nullptr, c, a, {b0, b1}});
}

}  // namespace groundspeed
