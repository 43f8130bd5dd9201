// Rows that no thread holds, brought into a ring in shared memory and taken on to the output by bulk copies.
//
// Memory-bound: the rows named are read, N rows written. In cuda_vec a row passes through registers: a warp waits for
// its id, then for its four vectors, and then writes. Here one warp a block, which stays on the device, orders bulk
// copies (cp.async.bulk) through a ring of stages of 8 KiB, and waits only for the oldest. A stage is a piece of a long
// row, or some short rows, each ordered by a lane; their ids are loaded a turn ahead, and they go out in one copy: they
// are neighbours in the output. Bits are copied whatever the dtype. Rows of whole 16-byte packs; compute
// capability 9.0.
//
// In flight: reads at 2.15 TB/s for 1 µs or so are 2.2 MB, 16 KiB a multiprocessor. Four blocks of six stages have up
// to 160 KiB on their way in. At that rate a block has 2 µs for a turn, which is some 200 instructions of its warp.
//
// Predicted: 92 to 94 % of the ceiling for bfloat16 V=128256,N=32768,D=8192, where torch_compile reaches 91 %. The
// ceiling counts 452 MiB of different rows, but nothing here finds a repeated row save L2, so that nearly all 512 MiB
// are read, and (452 + 512) / (512 + 512) = 94 % is the most. Level with cuda_vec on shorter rows.
#include <algorithm>
#include <cstdint>

#include "../_cuda/elementwise.cuh"
#include "../_cuda/hopper_copy.cuh"
#include "../_cuda/reduce.cuh"

namespace {

using namespace groundspeed;

constexpr char kName[] = "embedding/cuda_bulk";
constexpr int kStages = 6;
constexpr int kStageBytes = 8192;
constexpr int kResidents = 4;  // blocks a multiprocessor
constexpr int kSharedBytes = kStages * (kStageBytes + static_cast<int>(sizeof(CopyBarrier)));
static_assert(kResidents * (kSharedBytes + 1024) <= 228 * 1024, "CUDA takes 1 KiB a block besides");

// What is copied, in items that fill a stage: some rows, or one of the pieces of a row.
struct Rows {
  const unsigned char* table;
  const int64_t* ids;
  unsigned char* out;
  int64_t known;  // rows of the table
  int64_t count;  // rows of the output
  int64_t row_bytes;
  unsigned int items;
  int each;         // rows an item, a lane each; 1 where a row is several pieces
  int pieces;       // of a row
  int piece_bytes;  // but for the last of a row; a whole row where it is one piece
};

// One item: so many rows from the first on, so many bytes of each, so far into them.
struct Item {
  int64_t first;
  int64_t from;
  int rows;
  int bytes;

  __device__ Item(const Rows& rows, unsigned int number) {
    const unsigned int pieces = rows.pieces;
    first = static_cast<int64_t>(number / pieces) * rows.each;
    from = static_cast<int64_t>(number % pieces) * rows.piece_bytes;
    this->rows = static_cast<int>(min(static_cast<int64_t>(rows.each), rows.count - first));
    bytes = static_cast<int>(min(static_cast<int64_t>(rows.piece_bytes), rows.row_bytes - from));
  }
};

// Starts to copy `bytes` in one run, to be counted in this thread's next group. Addresses and `bytes` as in copy_bytes.
__device__ __forceinline__ void store_bytes(void* destination, const void* source, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(destination),
               "r"(shared_address(source)), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Returns when all of this thread's groups but the latest kLatest have read what they store: it may be overwritten.
template <int kLatest>
__device__ __forceinline__ void wait_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kLatest) : "memory");
}

// Returns when all that this thread's groups store has been written.
__device__ __forceinline__ void wait_stores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// The id of the row of an item that is this lane's, or of none.
__device__ __forceinline__ int64_t lane_id(const Rows& rows, unsigned int number) {
  const int lane = static_cast<int>(threadIdx.x);
  if (number >= rows.items) return 0;
  const Item item(rows, number);
  return lane < item.rows ? rows.ids[item.first + lane] : 0;
}

// The whole warp: orders the copies that fill a stage with an item. What was in the stage is not needed any more.
__device__ __forceinline__ void bring(const Rows& rows, unsigned int number, int64_t id, unsigned char* stage,
                                      CopyBarrier* full) {
  const Item item(rows, number);
  const int lane = static_cast<int>(threadIdx.x);
  if (lane == 0) barrier_arrive_expecting(full, item.rows * item.bytes);
  __syncwarp();
  if (lane < item.rows) {
    if (id < 0 || id >= rows.known) __trap();  // a copy would bring what is no row, or fail without a word of why
    copy_bytes(stage + lane * item.bytes, rows.table + id * rows.row_bytes + item.from, item.bytes, full);
  }
}

// Item n of a block goes through stage n mod kStages, in phase n / kStages of its barrier. A stage is filled again a
// turn after its store was ordered, so that the store has had that turn to read it.
__global__ void __launch_bounds__(kWarp) embedding_bulk(Rows rows) {
  extern __shared__ __align__(128) unsigned char stages[];
  CopyBarrier* full = reinterpret_cast<CopyBarrier*>(stages + kStages * kStageBytes);
  const int lane = static_cast<int>(threadIdx.x);
  if (lane == 0) {
    for (int stage = 0; stage < kStages; ++stage) barrier_init(full + stage, 1);
    barrier_init_fence();
  }
  __syncwarp();
  const unsigned int step = gridDim.x;
  unsigned int ahead = blockIdx.x;  // the next item to be brought
  int64_t id[kStages];
#pragma unroll
  for (int stage = 0; stage < kStages; ++stage) id[stage] = lane_id(rows, ahead + stage * step);
#pragma unroll
  for (int stage = 0; stage < kStages; ++stage, ahead += step) {
    if (ahead < rows.items) bring(rows, ahead, id[stage], stages + stage * kStageBytes, full + stage);
  }
  int64_t next = lane_id(rows, ahead);
  int stage = 0, before = kStages - 1;
  uint32_t parity = 0;
  for (unsigned int number = blockIdx.x; number < rows.items; number += step) {
    if (lane == 0) {
      const Item item(rows, number);
      barrier_wait(full + stage, parity);
      store_bytes(rows.out + item.first * rows.row_bytes + item.from, stages + stage * kStageBytes,
                  item.rows * item.bytes);
      commit_stores();
    }
    // In the first turn the stage before holds the last of the first items, and nothing was stored from it yet.
    if (number != blockIdx.x && ahead < rows.items) {
      const int64_t now = next;
      next = lane_id(rows, ahead + step);
      if (lane == 0) wait_stores_read<1>();
      bring(rows, ahead, now, stages + before * kStageBytes, full + before);
      ahead += step;
    }
    before = stage;
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
  if (lane == 0) wait_stores();
}

// Packs of a row go into as few pieces as fit a stage, alike but for the last; short rows share one, but not so many
// that blocks are left without any.
Rows planned(const Tensor& table, const Tensor& ids, const Tensor& out, int64_t row_bytes, int64_t room) {
  constexpr int64_t kStagePacks = kStageBytes / kPackBytes;
  const int64_t count = ids.size(0), packs = row_bytes / kPackBytes;
  const int64_t piece = ceil_div(packs, ceil_div(packs, kStagePacks)), pieces = ceil_div(packs, piece);
  const int64_t most = pieces == 1 ? std::min<int64_t>(kStagePacks / piece, kWarp) : 1;
  const int64_t each = std::clamp<int64_t>(count / room, 1, most);
  const int64_t items = ceil_div(count, each) * pieces;
  STD_TORCH_CHECK(items < (1ll << 31), kName, ": expected fewer than 2^31 pieces of output");
  return {static_cast<const unsigned char*>(table.const_data_ptr()),
          input_pointer<int64_t>(ids),
          static_cast<unsigned char*>(out.mutable_data_ptr()),
          table.size(0),
          count,
          row_bytes,
          static_cast<unsigned int>(items),
          static_cast<int>(each),
          static_cast<int>(pieces),
          static_cast<int>(piece * kPackBytes)};
}

// Without the second attribute CUDA may give shared memory too little of a multiprocessor for all blocks to stay.
void allow_residents() {
  cudaError_t error = cudaFuncSetAttribute(embedding_bulk, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (error == cudaSuccess) {
    error = cudaFuncSetAttribute(embedding_bulk, cudaFuncAttributePreferredSharedMemoryCarveout,
                                 cudaSharedmemCarveoutMaxShared);
  }
  STD_TORCH_CHECK(error == cudaSuccess, kName, ": ", kSharedBytes, " bytes of shared memory: ",
                  cudaGetErrorString(error));
}

Tensor run(Tensor weights, Tensor numbers) {
  STD_TORCH_CHECK(weights.dim() == 2 && numbers.dim() == 1 && numbers.scalar_type() == ScalarType::Long, kName,
                  ": expected a table [V, D] and ids [N] of int64");
  const Tensor table = torch::stable::contiguous(weights), ids = torch::stable::contiguous(numbers);
  Tensor out = torch::stable::new_empty(table, {ids.size(0), table.size(1)});
  if (out.numel() == 0) return out;
  int64_t row_bytes = table.size(1);
  dispatch_float(table, kName, [&](auto tag) { row_bytes *= sizeof(tag); });
  STD_TORCH_CHECK(row_bytes % kPackBytes == 0 && is_aligned16(table.const_data_ptr()) &&
                      is_aligned16(out.const_data_ptr()),
                  kName, ": expected rows of whole 16-byte packs at multiples of 16 bytes");
  const int64_t room = static_cast<int64_t>(device_attribute(table, cudaDevAttrMultiProcessorCount)) * kResidents;
  const Rows rows = planned(table, ids, out, row_bytes, room);
  allow_residents();
  const unsigned int grid = static_cast<unsigned int>(std::min<int64_t>(rows.items, room));
  embedding_bulk<<<grid, kWarp, kSharedBytes, current_stream(out)>>>(rows);
  check_launch(kName);
  return out;
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor table, Tensor ids) -> Tensor", run)
