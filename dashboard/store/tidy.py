"""Keeps the chunks few: small ones are merged, and much that has piled up in memory is sealed, a partition a file."""

from __future__ import annotations

from pathlib import Path

from dashboard.store.chunks import Chunk, merge, seal, split

SMALL_ROWS = 20_000
MOST_SMALL = 12  # chunks so small; with one more they are merged
MOST_IN_MEMORY = 400_000  # rows; with more, all of them are sealed
LARGEST = 500_000  # rows of a sealed chunk that another is merged into


def tidied(chunks: dict[str, Chunk], read: list[Chunk], folder: Path) -> dict[str, Chunk]:
    """The chunks there were and those just read, as few as it pays to make them.

    A run a minute would otherwise split every frame into ever more pieces. Where ``folder`` cannot be written, rows
    stay in memory.
    """
    every = {**chunks, **{chunk.name: chunk for chunk in read if chunk.sources}}
    small = [chunk for chunk in every.values() if chunk.path is None and chunk.height < SMALL_ROWS]
    if len(small) > MOST_SMALL:
        every = _replaced(every, small, [merge(small)])
    loose = [chunk for chunk in every.values() if chunk.path is None]
    if sum(chunk.height for chunk in loose) > MOST_IN_MEMORY:
        try:
            every = _sealed(every, loose, folder)
        except OSError:
            return every  # the next refresh tries again; the store tells that the cache cannot be written
    return every


def _sealed(every: dict[str, Chunk], loose: list[Chunk], folder: Path) -> dict[str, Chunk]:
    """Each partition of the loose chunks in a sealed one, together with smaller sealed ones of the same partition.

    Merged are those of at most twice the rows: a partition's chunks then double from one to the next, so that there
    are few, and a row is written again seldom. Raises OSError.
    """
    gone, made = list(loose), list[Chunk]()
    for part in split(merge(loose)):
        (partition,) = part.partitions
        same = [chunk for chunk in every.values() if chunk.path and chunk.partitions == {partition}]
        for chunk in sorted(same, key=lambda chunk: chunk.height):
            if chunk.height > 2 * part.height or chunk.height + part.height > LARGEST:
                break
            part = merge([chunk, part])
            gone.append(chunk)
        made.append(seal(folder, part))
    return _replaced(every, gone, made)


def _replaced(every: dict[str, Chunk], gone: list[Chunk], made: list[Chunk]) -> dict[str, Chunk]:
    names = {chunk.name for chunk in gone}
    left = {name: chunk for name, chunk in every.items() if name not in names}
    return left | {chunk.name: chunk for chunk in made}
