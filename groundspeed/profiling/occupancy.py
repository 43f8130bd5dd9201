"""How many warps of a kernel fit on a multiprocessor at once, and what keeps more from fitting.

Limits are those of the CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability"; how
registers and shared memory are handed out follows the toolkit's ``cuda_occupancy.h``.
"""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32
_PARTITIONS = 4  # of a multiprocessor's registers; a warp lives in one of them
_REGISTER_UNIT = 256  # registers are given to a warp in units of so many


@dataclass(frozen=True)
class Multiprocessor:
    """What one multiprocessor has. Shared memory in bytes; ``reserved`` of it goes to the system with every block."""

    warps: int
    blocks: int
    shared: int
    reserved: int = 1024
    shared_unit: int = 128
    registers: int = 65536


_KNOWN = {
    "7.0": Multiprocessor(64, 32, 96 << 10, reserved=0, shared_unit=256),
    "7.5": Multiprocessor(32, 16, 64 << 10, reserved=0, shared_unit=256),
    "8.0": Multiprocessor(64, 32, 164 << 10),
    "8.6": Multiprocessor(48, 16, 100 << 10),
    "8.7": Multiprocessor(48, 16, 164 << 10),
    "8.9": Multiprocessor(48, 24, 100 << 10),
    "9.0": Multiprocessor(64, 32, 228 << 10),
    "10.0": Multiprocessor(64, 32, 228 << 10),
    "12.0": Multiprocessor(48, 24, 100 << 10),
}


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps that fit at once, the share of all warps, and what ends it: one of LIMITERS."""

    blocks: int
    warps: int
    share: float
    limiter: str


LIMITERS = ("warps", "blocks", "registers", "shared memory")


def multiprocessor(capability: str) -> Multiprocessor | None:
    """The limits of a compute capability such as ``9.0``, or None where they are not on record."""
    return _KNOWN.get(capability)


def theoretical(of: Multiprocessor, threads: int, registers: int, shared: int) -> Occupancy:
    """Of a kernel with so many threads a block, registers a thread, and bytes of shared memory a block.

    Of limits that end it together the first of LIMITERS is named.
    """
    warps = max(1, -(-threads // WARP))
    limits = {
        "warps": of.warps // warps,
        "blocks": of.blocks,
        "registers": _by_registers(of, registers, warps),
        "shared memory": of.shared // max(1, _rounded(shared + of.reserved, of.shared_unit)),
    }
    limiter = min(LIMITERS, key=lambda name: limits[name])
    resident = limits[limiter] * warps
    return Occupancy(limits[limiter], resident, resident / of.warps, limiter)


def _by_registers(of: Multiprocessor, registers: int, warps: int) -> int:
    if registers <= 0:
        return of.blocks
    of_a_warp = _rounded(registers * WARP, _REGISTER_UNIT)
    return (of.registers // _PARTITIONS // of_a_warp) * _PARTITIONS // warps


def _rounded(value: int, unit: int) -> int:
    return -(-value // unit) * unit
