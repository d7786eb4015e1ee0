"""How texts share a batch, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide how texts share a batch: pad to the longest of each batch (no change of results), sort "
    "by length into buckets (least padding, batches less mixed), or pack several texts into one "
    "row (no padding, and the attention needs a block mask)."
)
