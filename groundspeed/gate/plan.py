"""What one gate run is to compare: base's and head's inventory together, narrowed to what the change touches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from groundspeed.digest import case_digest, closure
from groundspeed.errors import UserError
from groundspeed.gate.config import Config
from groundspeed.gate.git import Change
from groundspeed.gate.paired import Pair, Side
from groundspeed.gate.report import Touched, Unmeasured
from groundspeed.operator import Case, Operator, Tolerance
from groundspeed.selection import Selection
from groundspeed.tree import Implementation, SpecError, Tree

IMPLS = "impls"


@dataclass(frozen=True)
class Scope:
    """What the command line asked for.

    everything
        Compare all operators, touched or not.
    only
        Shell patterns of ``operator`` or ``operator/implementation``; empty is all.
    force
        Measure identical code too, as A/A.
    selection
        Tier, dtypes and shapes of the cases.
    """

    selection: Selection
    everything: bool = False
    only: tuple[str, ...] = ()
    force: bool = False

    def includes(self, operator: str, implementation: str) -> bool:
        name = f"{operator}/{implementation}"
        return not self.only or any(fnmatchcase(name, p if "/" in p else f"{p}/*") for p in self.only)


@dataclass(frozen=True)
class PlannedPair:
    """A pair to measure. ``is_new`` has head on both sides: it is checked and timed, and compared with nothing."""

    operator: str
    pair: Pair
    why: str
    file: str  # head's source, relative to the project
    is_new: bool = False

    @property
    def base_name(self) -> str:
        return "" if self.is_new else self.pair.base.implementation


@dataclass(frozen=True)
class Vanished:
    """Something base measures and head does not: an implementation, or one of its cases. ``shape`` "" means all."""

    operator: str
    implementation: str
    reason: str
    dtype: str = ""
    shape: str = ""


@dataclass(frozen=True)
class Plan:
    """What is measured, and what is not.

    identical
        Counts the cases left out because base and head run the same code on the same computation.
    unmatched
        Touched operators of which the dtypes and shapes asked for let no case through, with the cases of the tier.
    """

    pairs: tuple[PlannedPair, ...] = ()
    vanished: tuple[Vanished, ...] = ()
    broken: tuple[Unmeasured, ...] = ()  # specs of head that cannot be used
    unmeasured: tuple[Unmeasured, ...] = ()
    touched: tuple[Touched, ...] = ()
    identical: int = 0
    remarks: tuple[str, ...] = ()
    unmatched: tuple[tuple[str, tuple[Case, ...]], ...] = ()

    def of(self, operator: str) -> tuple[PlannedPair, ...]:
        return tuple(planned for planned in self.pairs if planned.operator == operator)

    @property
    def operators(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(planned.operator for planned in self.pairs))

    def __add__(self, other: Plan) -> Plan:
        return Plan(
            self.pairs + other.pairs,
            self.vanished + other.vanished,
            self.broken + other.broken,
            self.unmeasured + other.unmeasured,
            self.touched + other.touched,
            self.identical + other.identical,
            self.remarks + other.remarks,
            self.unmatched + other.unmatched,
        )


@dataclass(frozen=True)
class Diff:
    """The change as far as it concerns what is measured: paths inside impls on either side, and the harness's."""

    head: frozenset[str]
    base: frozenset[str]
    renames: Mapping[str, str]  # head's path -> base's
    harness: tuple[str, ...]

    @classmethod
    def of(cls, changes: Sequence[Change], harness: Iterable[str]) -> Diff:
        inside = f"{IMPLS}/"
        paths = [(change.path, change.old_path or change.path, change.status) for change in changes]
        head = {new.removeprefix(inside) for new, _, status in paths if new.startswith(inside) and status != "D"}
        base = {old.removeprefix(inside) for _, old, status in paths if old.startswith(inside) and status != "A"}
        renames = {
            new.removeprefix(inside): old.removeprefix(inside)
            for new, old, status in paths
            if status == "R" and new.startswith(inside) and old.startswith(inside)
        }
        patterns = list(harness)
        measuring = {
            path for new, old, _ in paths for path in (new, old) if any(fnmatchcase(path, p) for p in patterns)
        }
        return cls(frozenset(head), frozenset(base), renames, tuple(sorted(measuring)))


def make_plan(head: Tree, base: Tree, diff: Diff, scope: Scope, config: Config) -> Plan:
    """The pairs, and what cannot be paired. ``base`` is a tree with its own specs; both lie in folders of their own.

    Raises UserError when ``scope.only`` matches nothing on either side.
    """
    operators = tuple(dict.fromkeys([*head.operators(), *base.operators()]))
    inventory = [
        (operator, name)
        for operator in operators
        for name in {i.name for tree in (head, base) for i in tree.implementations(operator)}
    ]
    for pattern in scope.only:
        if not any(Scope(scope.selection, only=(pattern,)).includes(*entry) for entry in inventory):
            raise UserError(
                f"--only {pattern}: matches no operator/implementation of base or head; type: groundspeed list"
            )
    plan = Plan()
    for operator in operators:
        plan += _OperatorPlanner(operator, head, base, diff, scope).plan()
    remarks = []
    if diff.harness:
        remarks.append(f"the harness changed ({', '.join(diff.harness)}): everything is measured, identical code too")
    return replace(plan, remarks=(*plan.remarks, *remarks))


def renamed_from(operator: str, head: Tree, base: Tree, diff: Diff) -> dict[str, str]:
    """Head's name -> base's, for implementations whose file git saw renamed and whose old name is gone."""
    old_names = {i.name for i in base.implementations(operator)}
    new_names = {i.name for i in head.implementations(operator)}
    found: dict[str, str] = {}
    for new, old in sorted(diff.renames.items()):
        new_path, old_path = Path(new), Path(old)
        inside = new_path.parent.as_posix() == old_path.parent.as_posix() == operator
        if inside and new_path.stem in new_names - old_names and old_path.stem in old_names - new_names:
            found.setdefault(new_path.stem, old_path.stem)
    return found


def tighter(base: Mapping[str, Tolerance], head: Mapping[str, Tolerance]) -> dict[str, Tolerance]:
    """For each dtype of head the smaller of both sides' bounds: a change must not loosen what it is judged by."""
    return {dtype: _tighter(base[dtype], mine) if dtype in base else mine for dtype, mine in head.items()}


def _tighter(a: Tolerance, b: Tolerance) -> Tolerance:
    return Tolerance(min(a.rtol, b.rtol), min(a.atol, b.atol), min(a.norm_bound, b.norm_bound))


class _OperatorPlanner:
    """One operator's share of the plan: a class only so that its five givens need not be handed from step to step."""

    def __init__(self, operator: str, head: Tree, base: Tree, diff: Diff, scope: Scope) -> None:
        self.operator, self.head, self.base, self.diff, self.scope = operator, head, base, diff, scope
        self.forced = scope.force or bool(diff.harness)

    def plan(self) -> Plan:
        heads = {i.name: i for i in self.head.implementations(self.operator)}
        bases = {i.name: i for i in self.base.implementations(self.operator)}
        if self.operator not in self.head.operators():
            return self._vanished(bases, "the operator has no spec any more")
        renames = renamed_from(self.operator, self.head, self.base, self.diff)
        gone = {name: i for name, i in bases.items() if name not in heads and name not in renames.values()}
        plan = self._vanished(gone, "the implementation is gone")
        wanted = [(i, bases.get(renames.get(name, name))) for name, i in heads.items() if self._included(name)]
        reasons = {head.name: self._why(head, base) for head, base in wanted}
        wanted = [(head, base) for head, base in wanted if reasons[head.name]]
        if not wanted:
            return plan
        try:
            spec = self.head.spec(self.operator)
        except SpecError as error:
            return plan + Plan(broken=(Unmeasured(self.operator, "", "", str(error)),))
        plan += self._spec_change(spec)
        selection = self.scope.selection
        if (selection.dtypes or selection.shapes) and not selection.cases(spec):
            return plan + Plan(unmatched=((self.operator, spec.tier_cases(selection.tier)),))
        for head, base in wanted:
            plan += self._pair(spec, head, base, reasons[head.name])
        return plan

    def _included(self, implementation: str) -> bool:
        return self.scope.includes(self.operator, implementation)

    def _vanished(self, implementations: Iterable[str], reason: str) -> Plan:
        names = [name for name in implementations if self._included(name)]
        return Plan(vanished=tuple(Vanished(self.operator, name, reason) for name in names))

    def _why(self, head: Implementation, base: Implementation | None) -> str:
        """Why an implementation is to be measured, or "" when the change does not touch it."""
        if base is None:
            return "new"
        own = {file.relative_to(self.head.root).as_posix() for file in head.files}
        if own & self.diff.head or len(head.files) != len(base.files):
            return "its file changed"
        reached = self._closure(self.head, head.files) & self.diff.head
        reached |= self._closure(self.base, base.files) & self.diff.base
        if reached:
            return f"it uses {', '.join(sorted(reached))}"
        if self._spec_files() & (self.diff.head | self.diff.base):
            return "its spec changed"
        if self.diff.harness:
            return "the harness changed"
        return "asked for" if self.scope.everything or self.scope.force else ""

    def _spec_files(self) -> frozenset[str]:
        sides = [tree for tree in (self.head, self.base) if tree.spec_file(self.operator).is_file()]
        return frozenset().union(*(self._closure(tree, [tree.spec_file(self.operator)]) for tree in sides))

    @staticmethod
    def _closure(tree: Tree, files: Iterable[Path]) -> frozenset[str]:
        found = frozenset[Path]().union(*(closure(tree.root, file) for file in files))
        return frozenset(path.relative_to(tree.root).as_posix() for path in found)

    def _base_spec(self) -> Operator | None:
        if self.operator not in self.base.operators():
            return None
        return self.base.spec(self.operator)

    def _spec_change(self, spec: Operator) -> Plan:
        """Cases that head's spec no longer lists, and what is said of a changed spec."""
        try:
            old = self._base_spec()
        except SpecError as error:
            reason = f"base's spec cannot be used, so that nothing says which cases vanished: {error}"
            return Plan(unmeasured=(Unmeasured(self.operator, "", "", reason),))
        if old is None or not self._spec_files() & (self.diff.head | self.diff.base):
            return Plan()
        kept = {_key(case) for case in spec.bench_cases}
        gone = [case for case in old.bench_cases if _key(case) not in kept]
        remark = f"{self.operator}: its spec changed, base is judged under head's with the tighter tolerance"
        return Plan(
            vanished=tuple(
                Vanished(self.operator, "", "head's spec lists the case no more", case.dtype, case.shape_label)
                for case in gone
                if not self.scope.only or self.operator in self.scope.only
            ),
            remarks=(remark,),
        )

    def _pair(self, spec: Operator, head: Implementation, base: Implementation | None, why: str) -> Plan:
        file = (head.cuda_source or head.files[0]).relative_to(self.head.root).as_posix()
        touched = (Touched(self.operator, head.name, why),)
        cases = self.scope.selection.cases(spec)
        head_side = Side(self.head.root, head.name)
        if base is None:
            pair = Pair(head.name, head_side, head_side, cases, dict(spec.tolerance))
            planned = PlannedPair(self.operator, pair, why, f"{IMPLS}/{file}", is_new=True)
            return Plan(pairs=(planned,), touched=touched) if cases else Plan()
        same_code = self.head.implementation_digest(head) == self.base.implementation_digest(base)
        kept = cases if self.forced or not same_code else tuple(case for case in cases if not self._same_case(case))
        identical = len(cases) - len(kept)
        if not kept:
            return Plan(identical=identical)
        old = self._old_tolerance()
        pair = Pair(head.name, Side(self.base.root, base.name), head_side, kept, tighter(old, spec.tolerance))
        planned = PlannedPair(self.operator, pair, why, f"{IMPLS}/{file}")
        return Plan(pairs=(planned,), touched=touched, identical=identical)

    def _same_case(self, case: Case) -> bool:
        """Whether base lists the case too and computes the same in it."""
        try:
            old = self._base_spec()
        except SpecError:
            return False
        if old is None or _key(case) not in {_key(each) for each in old.bench_cases}:
            return False
        mine = case_digest(self.head.root, self.head.spec_file(self.operator), case)
        return mine == case_digest(self.base.root, self.base.spec_file(self.operator), case)

    def _old_tolerance(self) -> Mapping[str, Tolerance]:
        try:
            old = self._base_spec()
        except SpecError:
            return {}  # _spec_change has reported it as not measured
        return {} if old is None else old.tolerance


def _key(case: Case) -> tuple[str, frozenset[tuple[str, int | str]]]:
    """A case whatever order its shape is written in."""
    return case.dtype, frozenset(case.shape)
