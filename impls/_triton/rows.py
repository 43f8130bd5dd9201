"""What Triton kernels with one program a row share: which rows fit into registers, and how many warps they get."""

import triton

LONGEST_ROW_IN_REGISTERS = 32768
CHUNK = 8192  # elements at a time of a row that does not fit
ELEMENTS_PER_THREAD = 16


def fits(length):
    return length <= LONGEST_ROW_IN_REGISTERS


def block_for(length):
    """Elements a program holds: the row padded to a power of two, or a chunk of a row that does not fit."""
    return triton.next_power_of_2(max(length, 1)) if fits(length) else CHUNK


def warps_for(block):
    """Warps a program, for ELEMENTS_PER_THREAD elements a thread: 1 to 32, the hardware's limit."""
    return min(max(block // (32 * ELEMENTS_PER_THREAD), 1), 32)
