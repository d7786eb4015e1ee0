"""Readings and how they weigh: the only place where numbers become a status.

A check measures; what it measured goes into a reading of one of four kinds, each with its null:

    exact      it must be a certain value and is not, beyond the rounding of its dtype
    counted    k of n against a limit on the share, with the interval of the share
    compared   a quantity against a limit, or against the noise of its own series
    refused    an error that Python or torch raised, known by its class and operator

`finding()` turns readings into a finding: its status and confidence are derived, never written by
hand. `limits/` holds every number that a reading is compared with, with its unit and its reason.
"""

from sawbones.evidence.confidence import confidence_of
from sawbones.evidence.crashing import explained
from sawbones.evidence.limit import Limit, collecting
from sawbones.evidence.readings import compared, context, counted, exact, refused, tolerance
from sawbones.evidence.weighing import NothingToJudge, finding

__all__ = [
    "Limit",
    "NothingToJudge",
    "collecting",
    "compared",
    "confidence_of",
    "context",
    "counted",
    "exact",
    "explained",
    "finding",
    "refused",
    "tolerance",
]
