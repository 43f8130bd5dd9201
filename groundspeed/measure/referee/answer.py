"""Whether the values are right: each of these looks at the errors of a trial."""

from __future__ import annotations

from groundspeed.measure.referee.errors import Errors
from groundspeed.measure.referee.trial import Complaint, Trial, same_outputs
from groundspeed.operator import Tolerance


def finite(trial: Trial) -> Complaint | None:
    return not_finite(trial.errors)


def special_values(trial: Trial) -> Complaint | None:
    """NaN and infinities where the oracle has them."""
    wrong = trial.errors.not_equal
    if not wrong:
        return None
    return Complaint("special values", f"{_elements(wrong)} other than the reference, which is NaN or infinite there")


def tolerance(trial: Trial) -> Complaint | None:
    return beyond_tolerance(trial.errors, trial.sheet.tolerance)


def norm(trial: Trial) -> Complaint | None:
    return beyond_norm(trial.errors, trial.sheet.tolerance)


def later_calls(trial: Trial) -> Complaint | None:
    """Later calls give the same bits, or, where the order of additions is free, an answer within the tolerance."""
    sheet = trial.sheet
    for number, outputs in enumerate(trial.repeats, start=2):
        if same_outputs(outputs, trial.early):
            continue
        complaint = wrong(Errors.of(outputs, sheet.expected, sheet.tolerance), sheet.tolerance)
        if complaint:
            return Complaint("later calls", f"call {number} on the same inputs: {complaint}")
    return None


def wrong(errors: Errors, allowed: Tolerance) -> Complaint | None:
    """The first of all that can be wrong with the values of an output."""
    if errors.not_equal:
        return Complaint("special values", f"{_elements(errors.not_equal)} other than the reference's")
    return not_finite(errors) or beyond_tolerance(errors, allowed) or beyond_norm(errors, allowed)


def not_finite(errors: Errors) -> Complaint | None:
    if not errors.not_finite:
        return None
    return Complaint("finite", f"{_elements(errors.not_finite)} NaN or infinite where the reference is finite")


def beyond_tolerance(errors: Errors, allowed: Tolerance) -> Complaint | None:
    found = errors.accuracy
    if found.tolerance_used <= 1:
        return None
    return Complaint(
        "tolerance",
        f"max |out - ref| = {found.max_abs:.3g} is {found.tolerance_used:.3g} times what "
        f"atol {allowed.atol:.3g} + rtol {allowed.rtol:.3g} allows",
    )


def beyond_norm(errors: Errors, allowed: Tolerance) -> Complaint | None:
    found = errors.accuracy
    if found.norm <= allowed.norm_bound:
        return None
    return Complaint("norm", f"||out - ref|| / ||ref|| = {found.norm:.3g}, allowed {allowed.norm_bound:.3g}")


def _elements(count: int) -> str:
    return f"{count} element is" if count == 1 else f"{count} elements are"
