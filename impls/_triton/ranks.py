"""Kernels of one rank that write to the others' mailboxes (``_ranks.mailbox``), and how they meet.

Block b of a grid deals with the same elements on every rank, so it waits for block b of the others alone. A grid is
small enough to be resident at once: a block that waits for one that has not begun would keep it from beginning.
"""

import torch
import triton
import triton.language as tl

from .._ranks.mailbox import BLOCKS, FLAG_BYTES, MOST_RANKS

WARPS = 8
BLOCK_BYTES = WARPS * 32 * 4 * 16  # four 16-byte vectors a thread


@triton.jit
def meet(addresses, epoch, rank, WORLD: tl.constexpr, MOST: tl.constexpr):
    """Say that this block's stores are done, in every rank's mailbox, and wait for the same of each of them.

    A release orders what the whole block stored before the barrier in front of it; a rank may be a call ahead.
    """
    block = tl.program_id(0)
    tl.debug_barrier()
    for peer in tl.static_range(WORLD):
        flags = tl.load(addresses + peer).to(tl.pointer_type(tl.int32))
        tl.atomic_xchg(flags + block * MOST + rank, epoch, sem="release", scope="sys")
    own = tl.load(addresses + rank).to(tl.pointer_type(tl.int32)) + block * MOST
    for peer in tl.static_range(WORLD):
        while tl.atomic_add(own + peer, 0, sem="acquire", scope="sys") < epoch:
            pass
    tl.debug_barrier()


@triton.jit
def slot_of(addresses, peer, place, DTYPE: tl.constexpr):
    """A pointer to ``place`` bytes into a rank's mailbox; places are multiples of 256."""
    return tl.multiple_of((tl.load(addresses + peer) + place).to(tl.pointer_type(DTYPE)), 16)


@triton.jit
def push_and_sum(
    x,
    y,
    addresses,
    calls,
    N,
    stride,
    slot,
    rank,
    WORLD: tl.constexpr,
    SCATTER: tl.constexpr,
    FLAGS: tl.constexpr,
    MOST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """y [N] = the sum over ranks of their x, each pushed into the others' mailboxes first.

    SCATTER sums piece ``rank`` of every x, which has WORLD pieces ``stride`` elements apart; else x is one piece.
    """
    block = tl.program_id(0)
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    begin = block.to(tl.int64) * BLOCK
    epoch = tl.load(calls + block) + 1
    half = FLAGS + (epoch % 2).to(tl.int64) * WORLD * slot
    element = x.dtype.element_ty
    for start in range(begin, N, step):
        places = start + tl.arange(0, BLOCK)
        inside = places < N
        for peer in tl.static_range(WORLD):
            if peer != rank:
                piece = x + peer * tl.cast(stride, tl.int64) if SCATTER else x
                there = slot_of(addresses, peer, half + tl.cast(rank, tl.int64) * slot, element)
                tl.store(there + places, tl.load(piece + places, mask=inside), mask=inside)
    meet(addresses, epoch, rank, WORLD, MOST)
    for start in range(begin, N, step):
        places = start + tl.arange(0, BLOCK)
        inside = places < N
        total = tl.zeros([BLOCK], tl.float32)
        for peer in tl.static_range(WORLD):  # in one order on every rank: all get the same bits
            if peer == rank:
                piece = x + peer * tl.cast(stride, tl.int64) if SCATTER else x
                total += tl.load(piece + places, mask=inside, other=0.0).to(tl.float32)
            else:
                here = slot_of(addresses, rank, half + tl.cast(peer, tl.int64) * slot, element)
                total += tl.load(here + places, mask=inside, other=0.0, cache_modifier=".cg").to(tl.float32)
        tl.store(y + places, total.to(element), mask=inside)
    tl.store(calls + block, epoch)


@triton.jit
def stage_and_gather(
    x,
    y,
    addresses,
    calls,
    N,
    slot,
    rank,
    WORLD: tl.constexpr,
    FLAGS: tl.constexpr,
    MOST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """y [WORLD · N] = the ranks' x in their order, each copied into its rank's own mailbox and read from there."""
    block = tl.program_id(0)
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    begin = block.to(tl.int64) * BLOCK
    epoch = tl.load(calls + block) + 1
    half = FLAGS + (epoch % 2).to(tl.int64) * slot
    element = x.dtype.element_ty
    for start in range(begin, N, step):
        places = start + tl.arange(0, BLOCK)
        inside = places < N
        values = tl.load(x + places, mask=inside)
        if WORLD > 1:
            tl.store(slot_of(addresses, rank, half, element) + places, values, mask=inside)
        tl.store(y + rank * tl.cast(N, tl.int64) + places, values, mask=inside)
    meet(addresses, epoch, rank, WORLD, MOST)
    for start in range(begin, N, step):
        places = start + tl.arange(0, BLOCK)
        inside = places < N
        for peer in tl.static_range(WORLD):
            if peer != rank:
                there = slot_of(addresses, peer, half, element)
                values = tl.load(there + places, mask=inside, cache_modifier=".cv")
                tl.store(y + peer * tl.cast(N, tl.int64) + places, values, mask=inside)
    tl.store(calls + block, epoch)


def grid_of(size, block, device):
    """Programs for so many elements: no more than the GPU has multiprocessors, none waiting for another's place."""
    most = torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4
    return (max(1, min(triton.cdiv(size, block), most, BLOCKS)),)


def constants(mailbox):
    """What every kernel here is told of a mailbox."""
    return {"WORLD": mailbox.world, "FLAGS": FLAG_BYTES, "MOST": MOST_RANKS, "num_warps": WARPS}
