"""Liger-Kernel's embedding (experimental), a Triton program for a tile of rows by columns.

Memory-bound: the rows named are read, N rows written. Prediction: level with eager for long rows.
"""

from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction


def unsupported(dtype, V, N, D, layout="contiguous"):
    return "Liger's embedding cannot shape an output of no rows" if N == 0 else None


def prepare(table, ids):
    def run():
        return LigerEmbeddingFunction.apply(table, ids)

    return run
