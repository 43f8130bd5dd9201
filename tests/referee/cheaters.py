"""Every cheater of the gallery: the complaint it must draw, and the referee that lets it pass.

``blind`` differs from the real referee in what sees the cheat: one thing for most. A wrong answer is seen by two checks
that compare with the oracle element by element and as a whole, and some by those of later calls or of memory too; there
all of them are left out.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace

import torch

from groundspeed.measure.referee import Referee, Sheet
from groundspeed.measure.referee.precautions import filled_memory
from groundspeed.measure.referee.rules import SITTINGS, forward
from groundspeed.operator import Case, case
from groundspeed.tree import Tree
from tests.referee.court import FAULTY, GALLERY, but, without

N = case("float32", N=1000)
LARGE = case("float32", N=1 << 22)  # 16 MiB: more than other threads of a test process free meanwhile
UNWRITTEN = ("finite", "tolerance")  # NaN, or a huge number where the C library fills memory
WRONG_ANSWER = without("tolerance", "norm")
FIRST_INPUTS_ONLY = but(sittings=SITTINGS[:1])


@dataclass(frozen=True)
class Cheater:
    """``complaints``: what the verdict may begin with, once the sitting is left out."""

    operator: str
    name: str
    complaints: str | tuple[str, ...]
    blind: Referee
    case: Case = N
    tree: Tree = GALLERY
    rules: Referee | None = None  # of the full court; the real referee when not given

    def __str__(self) -> str:
        return f"{self.operator}/{self.name}"

    def accepts(self, verdict: str) -> bool:
        allowed = (self.complaints,) if isinstance(self.complaints, str) else self.complaints
        named = verdict.removeprefix("right before, wrong with ")
        if named != verdict:
            named = named.partition(": ")[2]  # the sitting's name
        return named.partition(":")[0] in allowed


def slow_peek(out: torch.Tensor) -> torch.Tensor:
    time.sleep(0.05)
    return out.clone()


def tell_the_version(tensor: torch.Tensor, fresh: torch.Tensor) -> None:
    tensor.copy_(fresh)


def zeroed_memory(sheet: Sheet):
    return filled_memory(sheet, 0, 0)


def as_it_comes(sheet: Sheet):
    """Memory is left to the allocator: what was freed keeps its values for a while."""
    return contextlib.nullcontext()


def patient_peek(out: torch.Tensor) -> torch.Tensor:
    torch.cuda.synchronize()
    return out.clone()


TOLD = but(sittings=(SITTINGS[0], replace(SITTINGS[1], renew=tell_the_version)))
IN_ORDER = but(sittings=tuple(replace(sitting, order=forward) for sitting in SITTINGS))
PATIENT = but(wait=lambda device: time.sleep(0.05))  # the CPU has no synchronise that waits for a thread

CHEATERS = (
    # what is returned
    Cheater("same", "torch_input", "fresh memory", without("fresh_memory")),
    Cheater("double", "torch_buffer", "fresh memory", without("fresh_memory")),
    Cheater("double", "torch_ring", "fresh memory", without("fresh_memory")),
    Cheater("double", "torch_wide", "dtype", without("dtype")),
    Cheater("double", "torch_gaps", "strides", without("strides")),
    Cheater("double", "torch_row", "shape", without("shape")),
    Cheater("double", "torch_extra", "outputs", without("count")),
    Cheater("largest", "torch_one_output", "outputs", without("count"), case("float32", M=37, N=101)),
    Cheater("double", "torch_lazy_tensor", "type", without("plain")),
    Cheater("double", "torch_lazy_tuple", "type", without("plain")),
    Cheater("negative", "torch_sign_bit", "type", without("plain")),
    # answers from before
    Cheater("double", "torch_prepared", "tolerance", FIRST_INPUTS_ONLY),
    Cheater("double", "torch_remembers", "tolerance", FIRST_INPUTS_ONLY),
    Cheater("double", "torch_version", "tolerance", TOLD),
    Cheater("double", "torch_fingerprint", "tolerance", but(sittings=SITTINGS[:2])),
    Cheater("double", "torch_first_call", "tolerance", WRONG_ANSWER),
    Cheater("double", "torch_third_call", "later calls", without("later_calls")),
    Cheater("double", "torch_chance", ("tolerance", "later calls"), without("tolerance", "norm", "later_calls")),
    # memory
    Cheater("double", "torch_thread", "late", replace(PATIENT, peek=slow_peek), rules=PATIENT),
    Cheater("double", "torch_partial", UNWRITTEN, WRONG_ANSWER),
    Cheater("frame", "torch_trusts_zeros", UNWRITTEN, but(around=zeroed_memory), case("float32", M=33, N=65)),
    Cheater("double", "torch_scribbles", "inputs unchanged", without("inputs_unchanged")),
    Cheater("double", "torch_writes_behind", "bounds", without("fences_intact")),
    Cheater("double", "torch_writes_before", "bounds", without("fences_intact")),
    Cheater("double", "torch_reads_freed", "tolerance", but(around=as_it_comes)),
    Cheater("double", "torch_recycles", "kept", without("kept", "later_calls")),
    Cheater("double", "torch_hoards", "growing memory", but(growth=lambda grown, size: None), LARGE),
    # wrong answers
    Cheater("loose", "torch_zeros", "norm", without("norm")),
    Cheater("double", "torch_nan", "finite", without("finite")),
    Cheater("largest", "torch_wrong_place", "tolerance", WRONG_ANSWER, case("float32", M=37, N=101)),
    Cheater("relu", "torch_no_tail", UNWRITTEN, WRONG_ANSWER, case("float32", N=12345), FAULTY),
    Cheater(
        "relu",
        "torch_drops_nan",
        "special values",
        without("special_values"),
        case("float32", N=12345, values="special"),
        FAULTY,
    ),
    Cheater("normalize_color", "torch_transposed", "tolerance", WRONG_ANSWER, case("float32", N=1, H=5, W=7), FAULTY),
    Cheater("matmul", "torch_tf32", ("tolerance", "norm"), WRONG_ANSWER, case("float32", M=128, N=128, K=128), FAULTY),
    Cheater(
        "matmul", "torch_half_sums", ("tolerance", "norm"), WRONG_ANSWER, case("float16", M=64, N=64, K=2048), FAULTY
    ),
    Cheater("exponential", "torch_fast_exp", ("tolerance", "norm"), WRONG_ANSWER),
    Cheater("matmul_gelu", "torch_unmasked_store", "tolerance", WRONG_ANSWER, case("float32", M=17, N=19, K=23)),
    Cheater("swiglu", "torch_wrong_operand", "tolerance", WRONG_ANSWER, case("float32", M=7, K=24, N=20)),
    # what all implementations share
    Cheater("double", "torch_stops_the_clock", "tools", without("tools_untouched")),
    Cheater("double", "torch_never_waits", "tools", without("tools_untouched")),
    Cheater("double", "torch_own_profiler", "tools", without("tools_untouched")),
    Cheater("double", "torch_own_events", "tools", without("tools_untouched")),
    Cheater("double", "torch_own_clock", "tools", without("tools_untouched")),
    Cheater("double", "torch_own_span", "tools", without("tools_untouched")),
    Cheater("double", "torch_own_code", "tools", without("tools_untouched")),
    Cheater("double", "torch_own_float", "tools", without("tools_untouched")),
    Cheater("double", "torch_own_verdict", "tools", without("tools_untouched")),
    Cheater("double", "torch_sets_precision", "settings", without("settings_unchanged")),
    Cheater("double", "torch_sets_precision_anew", "settings", without("settings_unchanged")),
    Cheater("double", "torch_takes_threads", "settings", without("settings_unchanged")),
)

PATIENT_GPU = but(peek=patient_peek)
GPU_CHEATERS = (
    Cheater("double", "torch_elsewhere", "device", without("device")),
    Cheater(
        "double",
        "torch_side_stream",
        ("late", "finite"),
        but(peek=patient_peek, stage=lambda sheet: torch.cuda.synchronize()),
        LARGE,
    ),
    Cheater("double", "torch_not_joined", "late", PATIENT_GPU, LARGE),
    Cheater(
        "double",
        "torch_freed",
        ("fresh memory", "kept", "late"),
        without("fresh_memory", "kept", "settled", "later_calls"),
        LARGE,
    ),
    Cheater("double", "triton_race", ("tolerance", "later calls"), without("tolerance", "norm", "later_calls"), LARGE),
    Cheater("exponential", "triton_fast_exp", ("tolerance", "norm"), WRONG_ANSWER),
    Cheater("exponential", "cuda_fast_math", ("tolerance", "norm"), WRONG_ANSWER),
    Cheater(
        "relu",
        "cuda_no_tail",
        UNWRITTEN,
        without("finite", "tolerance", "norm", "later_calls"),
        case("float32", N=12345),
        FAULTY,
    ),
    Cheater(
        "matmul", "torch_allow_tf32", ("tolerance", "norm"), WRONG_ANSWER, case("float32", M=128, N=128, K=128), FAULTY
    ),
)
