"""What the profiled process is asked to run, and what it says of it."""

from __future__ import annotations

import msgspec

from groundspeed.operator import Case
from groundspeed.records import Environment, KernelResources

CaseWords = tuple[str, tuple[tuple[str, int | str], ...]]


class Ask(msgspec.Struct, frozen=True):
    """One implementation, and cases in the order of preference: the first that it answers is run.

    calls
        How often ``run`` is called while the profiler looks; twice more before.
    trace
        Where torch.profiler's trace goes; empty where another profiler looks on from outside.
    variables
        Of the environment, added to the process's: which GPU it sees.
    """

    tree: str
    operator: str
    implementation: str
    cases: tuple[CaseWords, ...]
    device: str
    calls: int
    trace: str = ""
    seed: int = 0
    variables: dict[str, str] = {}

    def case_list(self) -> list[Case]:
        return [Case(dtype, shape) for dtype, shape in self.cases]


class Answer(msgspec.Struct, frozen=True):
    """What ran, or in ``refused`` why nothing did.

    call_ns
        Host wall time of each synchronised call while the profiler looked on.
    resources
        What the compiler gave the implementation's own kernels: known without any profiler.
    """

    refused: str = ""
    case: CaseWords | None = None
    environment: Environment | None = None
    call_ns: tuple[float, ...] = ()
    resources: tuple[KernelResources, ...] = ()
    tuned: str = ""
