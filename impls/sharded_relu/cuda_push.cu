// One kernel a rank: rank 0 stores shards into the others' memory, they store them rectified into rank 0's.
//
// Bound by the link, which carries (W-1)/W of the vector each way, both ways at once: a round of it is sent, the round
// before it is rectified and sent back, and the one before that is moved from rank 0's mailbox into the result, all in
// one step, between two meetings of the blocks of one number. Rank 0 rectifies its own shard meanwhile. Prediction: on
// large vectors the time of torch_overlap less its launches, on small ones a third of torch_eager's.
//
// Reached on nvidia-h200 at 968ac8c4: 51.8 µs for float32 W=1,N=16777216, 2.59 TB/s, 60 % of the memory ceiling, 1.34
// times as fast as torch_eager (unstable).
#include "../_cuda/peers.cuh"

namespace {

using namespace groundspeed;

template <typename T>
__device__ __forceinline__ FloatPack<T> rectified(FloatPack<T> pack) {
#pragma unroll
  for (int lane = 0; lane < FloatPack<T>::kLanes; ++lane) {
    // A comparison with NaN is false, so NaN passes; fmaxf would drop it.
    if (to_float(pack.lanes[lane]) < 0.0f) pack.lanes[lane] = from_float<T>(0.0f);
  }
  return pack;
}

// x and y [size] on rank 0; `shard` elements, whole packs, belong to each rank, the last one's being the rest.
template <typename T>
__global__ void __launch_bounds__(kPeerBlock) sharded_relu(
    const T* x, T* y, int64_t size, int64_t shard, Mailboxes boxes, bool aligned) {
  constexpr int kLanes = FloatPack<T>::kLanes;
  const int call = boxes.calls[blockIdx.x];
  const int64_t half = kFlagBytes + (call & 1) * boxes.world * boxes.slot;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kPeerBlock + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kPeerBlock;
  const int64_t packs = shard / kLanes;
  const int rounds = static_cast<int>(ceil_div(packs, step * kRoundPacks));  // the same on every rank
  const int meetings = rounds + 1;
  // Calls body(pack of a shard) for this thread's packs of a round.
  const auto over_round = [&](int round, const auto& body) {
    if (round < 0 || round >= rounds) return;
    const int64_t begin = round * step * kRoundPacks;
    const int64_t end = min(packs, begin + step * kRoundPacks);
    for (int64_t pack = begin + first; pack < end; pack += step) body(pack);
  };
  for (int turn = 0; turn <= meetings; ++turn) {
    if (boxes.rank == 0) {
      over_round(turn, [&](int64_t pack) {
        for (int peer = 1; peer < boxes.world; ++peer) {
          const int64_t at = peer * shard + pack * kLanes;
          if (at >= size) break;
          store_pack(reinterpret_cast<T*>(place_in(mailbox(boxes, peer), half, 0, pack)),
                     load_some(x + at, size - at, aligned));
        }
        const int64_t at = pack * kLanes;
        if (at < size) store_some(y + at, rectified(load_some(x + at, size - at, aligned)), size - at, true);
      });
      over_round(turn - 2, [&](int64_t pack) {
        for (int peer = 1; peer < boxes.world; ++peer) {
          const int64_t at = peer * shard + pack * kLanes;
          if (at >= size) break;
          store_some(y + at, load_sent<T>(place_in(mailbox(boxes, 0), half, peer * boxes.slot, pack)), size - at, true);
        }
      });
    } else {
      over_round(turn - 1, [&](int64_t pack) {
        if (boxes.rank * shard + pack * kLanes >= size) return;
        store_pack(reinterpret_cast<T*>(place_in(mailbox(boxes, 0), half, boxes.rank * boxes.slot, pack)),
                   rectified(load_sent<T>(place_in(mailbox(boxes, boxes.rank), half, 0, pack))));
      });
    }
    if (turn < meetings) {
      announce(boxes, call * meetings + turn + 1);
      await(boxes, call * meetings + turn + 1);
    }
  }
  if (threadIdx.x == 0) boxes.calls[blockIdx.x] = call + 1;
}

Tensor run(Tensor x, Tensor addresses, Tensor calls, int64_t slot, int64_t rank, int64_t size, int64_t shard) {
  const Tensor source = torch::stable::contiguous(x);
  Tensor y = torch::stable::empty_like(source);
  const Mailboxes boxes = mailboxes_of(addresses, calls, slot, rank);
  dispatch_float(source, "sharded_relu/cuda_push", [&](auto tag) {
    using T = decltype(tag);
    const T* from = input_pointer<T>(source);
    sharded_relu<T><<<peer_grid<T>(addresses, shard), kPeerBlock, 0, current_stream(source)>>>(
        from, output_pointer<T>(y), size, shard, boxes, is_aligned16(from));
  });
  check_launch("sharded_relu/cuda_push");
  return y;
}

}  // namespace

GROUNDSPEED_OPERATOR(
    "run(Tensor x, Tensor addresses, Tensor calls, int slot, int rank, int size, int shard) -> Tensor", run)
