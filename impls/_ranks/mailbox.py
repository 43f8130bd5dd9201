"""Memory of each rank that the others write to directly, its addresses known to all: what our own kernels talk through.

On GPUs it is torch's symmetric memory: every rank allocates as much, and learns at which addresses it sees the others'
(``torch.distributed._symmetric_memory``). Only plain loads and stores go there, never the switch's multicast. On CPUs,
where Triton's interpreter stands in for a GPU, it is a file that all ranks map.

A mailbox begins with flags, MOST_RANKS for each of BLOCKS blocks; then come two halves of ``half_bytes``, used in turn,
so that one barrier a call is enough: whoever fills a half again has met every rank since that half was read.
"""

import os
import tempfile
from dataclasses import dataclass
from typing import Any

import torch
from torch import distributed

BLOCKS = 256  # a grid is never larger
MOST_RANKS = 16
FLAG_BYTES = BLOCKS * MOST_RANKS * 4
ALIGNMENT = 256


@dataclass(frozen=True)
class Mailbox:
    """This rank's mailbox, and the way to the others'.

    addresses
        int64 [world] on the device: where each rank's mailbox begins, in this rank's address space.
    calls
        int32 [BLOCKS] on the device: how many calls each block of a grid has made.
    memory
        What must live as long as the mailbox.
    """

    rank: int
    world: int
    half_bytes: int
    addresses: torch.Tensor
    calls: torch.Tensor
    memory: tuple[Any, ...]


def padded(size):
    """Bytes rounded up so that what follows is aligned for any vector."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def unreachable(**shape):
    """Why GPUs of a case's world cannot write to each other's memory, or None. On a CPU only the interpreter can."""
    if not torch.cuda.is_available():
        return None if os.environ.get("TRITON_INTERPRET", "0") not in ("", "0") else "its kernels need a GPU"
    for one in range(shape["W"]):
        for other in range(shape["W"]):
            if one != other and not torch.cuda.can_device_access_peer(one, other):
                return f"GPU {one} cannot write to the memory of GPU {other}"
    return None


def open_mailbox(device, half_bytes):
    """A mailbox a rank; all ranks of the default group must ask for one of the same size at once.

    Raises RuntimeError where symmetric memory cannot be had, with torch's reason.
    """
    rank, world = distributed.get_rank(), distributed.get_world_size()
    half = padded(half_bytes)
    size = FLAG_BYTES + 2 * half
    if world == 1:
        own = torch.zeros(size, dtype=torch.uint8, device=device)
        places, memory = [own.data_ptr()], (own,)
    elif device.type == "cuda":
        places, memory = _symmetric(size, device)
    else:
        places, memory = _mapped(size, rank, world)
    mailbox = Mailbox(
        rank=rank,
        world=world,
        half_bytes=half,
        addresses=torch.tensor(places, dtype=torch.int64, device=device),
        calls=torch.zeros(BLOCKS, dtype=torch.int32, device=device),
        memory=memory,
    )
    if device.type == "cuda":
        torch.cuda.synchronize()
    distributed.all_reduce(torch.zeros(1))  # of the hosts: nobody sends before all flags are zero
    return mailbox


def _symmetric(size, device):
    from torch._C._distributed_c10d import _SymmetricMemory
    from torch.distributed import _symmetric_memory

    try:
        # An allocation of its own: _symmetric_memory.empty may hand out a part of a larger one.
        own = _SymmetricMemory.empty_strided_p2p((size,), (1,), torch.uint8, device)
        own.zero_()
        handle = _symmetric_memory.rendezvous(own, distributed.group.WORLD)
        places = list(handle.buffer_ptrs)
    except Exception as error:
        raise RuntimeError(f"no symmetric memory between these GPUs: {error}") from error
    shifts = [0] * len(places)
    distributed.all_gather_object(shifts, own.data_ptr() - places[distributed.get_rank()])
    return [place + shift for place, shift in zip(places, shifts, strict=True)], (own, handle)


def _mapped(size, rank, world):
    """A file a rank, mapped by all and unlinked once all have."""
    folder = [tempfile.mkdtemp(prefix="mailboxes-") if rank == 0 else ""]
    distributed.broadcast_object_list(folder, src=0)
    paths = [os.path.join(folder[0], str(number)) for number in range(world)]
    torch.UntypedStorage.from_file(paths[rank], shared=True, nbytes=size).fill_(0)
    distributed.all_reduce(torch.zeros(1))
    storages = tuple(torch.UntypedStorage.from_file(path, shared=True, nbytes=size) for path in paths)
    distributed.all_reduce(torch.zeros(1))
    os.unlink(paths[rank])
    distributed.all_reduce(torch.zeros(1))
    if rank == 0:
        os.rmdir(folder[0])
    return [storage.data_ptr() for storage in storages], storages
