// One kernel in which each rank stores every other rank's piece into that rank's memory, meets them, and sums its own.
//
// Bound by the link: (W-1)·N elements leave each rank in 16-byte stores, which is what reduce-scatter must send;
// arriving, they cost the rank's memory a write and a read, the latter while the next ones come. Sums are in float32 and
// rounded once. Prediction: with two ranks ahead of NCCL on small vectors, where a call is one latency of the link, and
// level with it on large ones.
//
// Reached on nvidia-h200 at 968ac8c4: 51.8 µs for float32 W=1,N=16777216, 2.59 TB/s, 61 % of the memory ceiling, 0.669
// times as fast as torch_eager (unstable).
#include "../_cuda/peers.cuh"

namespace {

using namespace groundspeed;

Tensor run(Tensor x, Tensor y_like, Tensor addresses, Tensor calls, int64_t slot, int64_t rank) {
  const Tensor source = torch::stable::contiguous(x);
  Tensor y = torch::stable::empty_like(y_like);
  const Mailboxes boxes = mailboxes_of(addresses, calls, slot, rank);
  const int64_t size = source.numel() / boxes.world;
  dispatch_float(source, "reduce_scatter/cuda_push", [&](auto tag) {
    pushed_sum<decltype(tag)>(source, size, size, y, boxes);
  });
  check_launch("reduce_scatter/cuda_push");
  return y;
}

}  // namespace

GROUNDSPEED_OPERATOR(
    "run(Tensor x, Tensor y_like, Tensor addresses, Tensor calls, int slot, int rank) -> Tensor", run)
