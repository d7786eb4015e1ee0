"""What was masked of a report, by where the values came from."""

from __future__ import annotations

from sawbones.masking import mask_all, masker
from sawbones.schema import Report


def masked_in(report: Report) -> dict[str, int]:
    """In the recording, and in what the report itself says."""
    with masker().counting() as found:
        mask_all(report)
    here = {label: len(values) for label, values in found.items()}
    return {
        label: max(here.get(label, 0), report.masked.get(label, 0))
        for label in sorted({*here, *report.masked})
    }
