// The mask bytes that go with one pack of elements, in one access.
#pragma once

#include <cstdint>

namespace groundspeed {

template <int kLanes>
struct alignas(kLanes) MaskPack {
  uint8_t lanes[kLanes];
};

template <int kLanes>
__device__ __forceinline__ MaskPack<kLanes> load_mask(const uint8_t* address) {
  return *reinterpret_cast<const MaskPack<kLanes>*>(address);
}

}  // namespace groundspeed
