"""What counts as a finding: every threshold with its default, from pyproject.toml, from flags, or
from the caller.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from sawbones.schema.errors import SawbonesError
from sawbones.schema.project import ProjectNotReadable, nearest_project
from sawbones.stats.moments import NEAR
from sawbones.stats.overlaps import WHOLE


class AuditError(SawbonesError):
    """An audit that was asked for in a way that cannot be done."""


class CannotLook(Exception):
    """Raised by one audit: what it needs is not there. The report says so; the others go on."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A value at the threshold counts as a finding. Shares are of rows."""

    contamination: float = 0.001  # rows of one split that are in the other too
    wrong_split: float = WHOLE  # so many of them: the split is not one
    least_rows: float = 3  # fewer shared or doubled rows than this are no finding
    jaccard: float = 0.8  # of the sets of three-word runs of two texts
    near_duplicates: float = 0.001  # texts with such a twin in the other split
    auc: float = 0.95  # of one feature alone against the label
    r2: float = 0.95  # the same for a label that is a quantity
    correlation: float = 0.9  # |r| of one feature with the label
    importance: float = (
        0.15  # score lost without one feature, where the score with all is at least `auc`
    )
    group: float = 0.0  # rows of one split whose group is in the other too, more than this
    time_overlap: float = 0.01  # training rows later than the first per cent of the test rows
    moments: float = (
        NEAR  # how near to 0 and 1 the joint mean and spread of a standardised feature are
    )
    duplicates: float = 0.01  # rows that are in one split twice
    conflicts: float = 0.01  # rows with equal features and different labels
    psi: float = 0.2  # population stability index, noise taken off
    ks: float = 0.1  # Kolmogorov-Smirnov distance
    js: float = 0.2  # Jensen-Shannon distance, for categories
    significance: float = (
        0.001  # p-value after correction for the number of columns, asked for beside the effect
    )
    window: float = 0.1  # rows of one window that would have to change their bin
    null_rate: float = 0.05  # change of the share of missing values
    new_category: float = 0.01  # rows in categories that the other side never has
    label_shift: float = 0.05  # rows that would have to change their class
    concept: float = 0.1  # mean change of the label's rate at the same input, or of the error
    # error of a segment above the mean error (of a quantity: in standard deviations of the label)
    segment: float = 0.1
    segment_rows: float = 0.01  # the smallest segment worth naming
    imbalance: float = 0.01  # the rarest class
    round_trip: float = 0.01  # texts that do not come back from the tokenizer
    unknown: float = 0.01  # tokens that are unknown to the tokenizer
    truncated: float = 0.05  # texts longer than the limit
    lost_answer: float = 0.01  # texts of which the limit leaves no token of the answer
    empty: float = 0.01  # empty samples

    def changed(self, values: Mapping[str, Any]) -> Thresholds:
        known = {f.name for f in fields(self)}
        for name, value in values.items():
            if name not in known:
                near = difflib.get_close_matches(name, known, n=3, cutoff=0.3) or sorted(known)[:3]
                raise AuditError(
                    f"no threshold {name!r}. Nearest: {', '.join(near)}. All of them: "
                    "docs/how-to/audit.md"
                )
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise AuditError(
                    f"threshold {name} = {value!r}: a number was expected, e.g. "
                    f"{name}={getattr(self, name):g}"
                )
        return replace(self, **{name: float(value) for name, value in values.items()})

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def from_pyproject(start: Path | None = None) -> dict[str, Any]:
    """`[tool.sawbones.audit]` of the nearest pyproject.toml above the working folder; {} without
    one.
    """
    try:
        return nearest_project(start or Path.cwd()).table("audit")
    except ProjectNotReadable as error:
        raise AuditError(str(error)) from error


@dataclass(frozen=True, slots=True)
class Options:
    """What the user said of the data, beside the data."""

    label: str | None = None
    group: str | None = None
    time: str | None = None
    text: str | None = None
    prediction: str | None = None
    segments: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fitted: str | None = None  # file of a scaler, imputer or vocabulary
    redact: bool = False
    model: bool = True  # small models may be trained on a sample
    thresholds: Thresholds = Thresholds()
    tokenizer: str | None = None
    checkpoint_tokenizer: str | None = None
    answer: str | None = None  # column of what the model is to say after the text
    max_length: int | None = None
    vocab_size: int | None = None
