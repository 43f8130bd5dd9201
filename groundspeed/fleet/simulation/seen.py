"""What operators cost on one real GPU: the seconds that the simulation rests on.

Read from the footers of two runs of the core tier on one NVIDIA H200, kept under results/nvidia-h200/records:
20261129T220846Z-a251e5d6-36f0 and 20261130T030937Z-2dea5f4b-8e4b. A test holds these figures to the records.
"""

from __future__ import annotations

from dataclasses import dataclass

RUNS = ("20261129T220846Z-a251e5d6-36f0", "20261130T030937Z-2dea5f4b-8e4b")
MACHINE = "nvidia-h200"


@dataclass(frozen=True)
class Seen:
    """One operator's sweep. Seconds.

    implementations, rows
        How many implementations it has, and how many measurements (of an implementation on a case) went well.
    start
        A worker's start, and the ceilings.
    once
        Loading, building, preparing and first runs: what compiles and tunes.
    rest
        Judging and timing everything.
    """

    implementations: int
    rows: int
    start: float
    once: float
    rest: float

    @property
    def total(self) -> float:
        return self.start + self.once + self.rest


OPERATORS = {
    "add": Seen(5, 15, 3.4, 3.3, 2.7),
    "attention": Seen(10, 37, 24.7, 73.3, 25.4),
    "attention_decode": Seen(5, 18, 4.3, 61.3, 8.4),
    "conv_bn_relu_add": Seen(7, 27, 5.0, 100.8, 5.9),
    "copy": Seen(5, 15, 3.5, 3.3, 2.0),
    "cross_entropy": Seen(5, 18, 3.3, 28.8, 4.3),
    "embedding": Seen(6, 20, 4.3, 6.6, 3.9),
    "layer_norm": Seen(5, 19, 3.8, 20.1, 4.0),
    "many_small": Seen(7, 21, 3.7, 5.5, 10.1),
    "masked_softmax": Seen(5, 19, 3.5, 26.6, 5.1),
    "matmul": Seen(9, 32, 12.7, 56.6, 29.3),
    "matmul_pair": Seen(6, 22, 5.1, 73.2, 4.6),
    "normalize_color": Seen(14, 56, 8.3, 36.9, 26.9),
    "relu": Seen(12, 48, 9.1, 14.4, 10.4),
    "softmax": Seen(8, 27, 8.4, 41.3, 13.0),
    "swiglu_mlp": Seen(6, 22, 6.0, 158.4, 7.3),
}
