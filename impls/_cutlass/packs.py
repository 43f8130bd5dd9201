"""A thread's pack of 16 bytes of a vector, and the elements behind the last whole pack."""

from cutlass import cute

from .launch import BLOCK, BYTES


def lanes(tensor):
    """Elements in a pack."""
    return BYTES * 8 // tensor.element_type.width


def blocks(tensor):
    """Of a grid with a thread for each pack, the last one's included."""
    return cute.ceil_div(cute.ceil_div(cute.size(tensor), lanes(tensor)), BLOCK)


def my_pack():
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    return block * BLOCK + thread
