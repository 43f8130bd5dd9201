// In the place of impls/_cuda/torch_stable.cuh: tensors in guarded memory, errors as text, `run` by its address.
#pragma once

#include <array>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "host_warps.h"

#define STD_TORCH_CHECK(condition, ...) \
  if (!(condition)) throw std::runtime_error(host::joined(__VA_ARGS__))

namespace host {

template <typename... P>
std::string joined(const P&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

enum class ScalarType { Float, Half, BFloat16, Int, Long, Byte };  // host_nvcc.py has the same order

inline int64_t bytes_of(ScalarType type) {
  constexpr int64_t kBytes[] = {4, 2, 2, 4, 8, 1};
  return kBytes[static_cast<int>(type)];
}

struct Sizes {
  std::vector<int64_t> each;
  Sizes(std::initializer_list<int64_t> sizes) : each(sizes) {}
  Sizes(const int64_t* sizes, size_t count) : each(sizes, sizes + count) {}
};

struct Tensor {  // host_nvcc.py has the same
  void* data;
  int64_t sizes[4];
  int64_t steps[4];
  int dimensions;
  ScalarType type;

  int64_t dim() const { return dimensions; }
  int64_t size(int i) const { return sizes[i]; }
  int64_t stride(int i) const { return steps[i]; }
  ScalarType scalar_type() const { return type; }
  int64_t element_size() const { return bytes_of(type); }
  int get_device_index() const { return 0; }
  bool is_cpu() const { return false; }
  bool is_contiguous() const {
    int64_t step = 1;
    for (int i = dimensions - 1; i >= 0; step *= sizes[i--]) {
      if (sizes[i] != 1 && steps[i] != step) return false;
    }
    return true;
  }
  void* data_ptr() const { return data; }
  const void* const_data_ptr() const { return data; }
  void* mutable_data_ptr() const { return data; }
  int64_t numel() const {
    int64_t count = 1;
    for (int i = 0; i < dimensions; ++i) count *= sizes[i];
    return count;
  }
};

inline Tensor empty(const Sizes& given, ScalarType type) {
  const std::vector<int64_t>& sizes = given.each;
  Tensor made = {nullptr, {}, {}, static_cast<int>(sizes.size()), type};
  int64_t step = 1;
  for (int i = made.dimensions - 1; i >= 0; --i) {
    made.sizes[i] = sizes[i];
    made.steps[i] = step;
    step *= sizes[i];
  }
  made.data = guarded(step * made.element_size(), 16);
  return made;
}

static Tensor result;

// Numbers come in the place of a tensor's first size.
template <typename P>
P argument(const Tensor& given) {
  if constexpr (std::is_same_v<P, Tensor>) return given;
  else return static_cast<P>(given.sizes[0]);
}

template <typename... P, size_t... I>
void call(Tensor (*run)(P...), const Tensor* arguments, std::index_sequence<I...>) {
  result = run(argument<P>(arguments[I])...);
}

template <typename... P>
std::string called(Tensor (*run)(P...), const Tensor* arguments, int count) {
  if (count != sizeof...(P)) return "another number of arguments than run has";
  try {
    call(run, arguments, std::index_sequence_for<P...>());
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace host

namespace torch::stable {

inline host::Tensor new_empty(const host::Tensor& like, const host::Sizes& sizes) {
  return host::empty(sizes, like.type);
}

inline host::Tensor new_empty(const host::Tensor&, const host::Sizes& sizes, host::ScalarType type) {
  return host::empty(sizes, type);
}

inline host::Tensor empty_like(const host::Tensor& like) {
  return host::empty(host::Sizes(like.sizes, like.dimensions), like.type);
}

inline host::Tensor contiguous(const host::Tensor& tensor) {
  host::Tensor made = empty_like(tensor);
  if (std::equal(made.steps, made.steps + made.dimensions, tensor.steps)) return tensor;
  const int64_t bytes = tensor.element_size(), count = tensor.numel();
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = 0, rest = i;
    for (int d = tensor.dimensions - 1; d >= 0; rest /= tensor.sizes[d--]) {
      place += rest % tensor.sizes[d] * tensor.steps[d];
    }
    memcpy(static_cast<char*>(made.data) + i * bytes, static_cast<const char*>(tensor.data) + place * bytes, bytes);
  }
  return made;
}

}  // namespace torch::stable

namespace groundspeed {

using host::ScalarType;
using host::Tensor;

inline cudaStream_t current_stream(const Tensor&) { return nullptr; }

inline void check_launch(const char* kernel) {
  STD_TORCH_CHECK(cudaGetLastError() == cudaSuccess, kernel, ": ", cudaGetErrorString(cudaGetLastError()));
}

}  // namespace groundspeed

#define GROUNDSPEED_OPERATOR(schema, function)                                                                      \
  extern "C" {                                                                                                      \
  int host_launches;                                                                                                \
  }                                                                                                                 \
  extern "C" const char* host_run(const host::Tensor* arguments, int count, int processors, bool backwards,        \
                                  bool eager, host::Tensor* out) {                                                  \
    static std::string complaint;                                                                                   \
    host::said = nullptr;                                                                                           \
    host::launches = 0;                                                                                             \
    host::processors = processors;                                                                                  \
    host::order = {backwards, eager};                                                                               \
    complaint = host::called(function, arguments, count);                                                           \
    host_launches = host::launches;                                                                                 \
    *out = host::result;                                                                                            \
    return complaint.empty() ? nullptr : complaint.c_str();                                                         \
  }
