"""Stores whole tiles of 16 columns without a mask: a tile that ends past the row runs into the next one."""

import torch

TILE = 16


def prepare(a, b):
    def run():
        (rows, depth), columns = a.shape, b.shape[1]
        wide = -(-columns // TILE) * TILE
        padded = torch.zeros(depth, wide, dtype=b.dtype, device=b.device)
        padded[:, :columns] = b
        tiles = torch.nn.functional.gelu(a @ padded)
        room = torch.empty(rows * columns + TILE, dtype=a.dtype, device=a.device)
        for first in range(0, wide, TILE):
            for row in range(rows):
                start = row * columns + first
                room[start : start + TILE] = tiles[row, first : first + TILE]
        return room[: rows * columns].view(rows, columns)

    return run
