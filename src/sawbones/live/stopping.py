"""`--stop-on`: what ends a run, as the user wrote it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sawbones.schema import Finding, faults

NONFINITE = "nonfinite"
STATUSES = ("likely", "proven")


@dataclass(frozen=True)
class StopOn:
    """`nonfinite`, `likely` (or better), `proven`, or fault ids."""

    words: Collection[str] = ()

    @classmethod
    def parsed(cls, text: str) -> StopOn:
        words = [word.strip() for word in text.split(",") if word.strip()]
        known = {NONFINITE, *STATUSES, *faults()}
        unknown = [word for word in words if word not in known]
        if unknown or not words:
            raise ValueError(
                f"{text!r}: {unknown[0] if unknown else 'nothing'} is neither {NONFINITE}, likely, proven nor a "
                "fault id (sawbones faults lists them)"
            )
        return cls(tuple(words))

    @property
    def nonfinite(self) -> bool:
        return NONFINITE in self.words

    def ends(self, finding: Finding) -> bool:
        if finding.status not in STATUSES:
            return False
        better = finding.status == "proven" and "proven" in self.words
        return "likely" in self.words or better or finding.fault in self.words
