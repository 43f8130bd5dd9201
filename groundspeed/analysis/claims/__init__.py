"""Published figures beside ours: the claims ledger, and what stored records say to each claim.

Most claims were made for another GPU. Our figure is shown all the same, and the verdict says what kind of answer it is.
"""

from __future__ import annotations

from groundspeed.analysis.claims.answer import ROUNDING, Answer, Verdict, answers
from groundspeed.analysis.claims.ledger import Claim, LedgerError, read_claims
from groundspeed.analysis.claims.quantities import QUANTITIES, Quantity
from groundspeed.analysis.claims.shelf import Shelf

__all__ = [
    "QUANTITIES",
    "ROUNDING",
    "Answer",
    "Claim",
    "LedgerError",
    "Quantity",
    "Shelf",
    "Verdict",
    "answers",
    "read_claims",
]
