"""Launching a cuTile kernel on torch's current stream, over torch's memory. Tiles have sizes that are powers of two."""

import cuda.tile as ct
import torch

TILE = 2048  # elements of a vector that a block takes
ROW = 4096  # elements of a row that a block takes at a time where it does not hold the row


def launch(kernel, blocks, *arguments):
    ct.launch(torch.cuda.current_stream(), (blocks,), kernel, arguments)


def elementwise(kernel, *vectors):
    """A fresh vector of ``kernel(inputs, output, TILE)``, a tile a block."""
    sources = [vector.contiguous() for vector in vectors]
    y = torch.empty_like(sources[0])
    if y.numel():
        launch(kernel, -(-y.numel() // TILE), *sources, y, TILE)
    return y


def power_of_two(size):
    """The least one that is no less."""
    return 1 << max(size - 1, 0).bit_length()
