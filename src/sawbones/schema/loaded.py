"""Weights that were put into a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sawbones.schema.site import Site
from sawbones.schema.source import as_site


@dataclass(frozen=True, slots=True)
class LoadedWeights:
    """One call of a model's load_state_dict, in numbers of tensors."""

    given: int
    taken: int
    missing: int  # of the model's own, that were not given
    same: int  # of those that were taken, in the model's own memory before
    first_missing: str
    first_unexpected: str
    step: int
    site: Site | None

    @property
    def own(self) -> int:
        """Tensors of the model."""
        return self.taken + self.missing

    @property
    def is_own(self) -> bool:
        """All that was taken is the model's own memory: nothing changes."""
        return self.same == self.taken


def loaded_weights(row: Mapping[str, Any]) -> LoadedWeights:
    return LoadedWeights(
        row["given"],
        row["taken"],
        row["missing"],
        row["same"],
        row["first_missing"],
        row["first_unexpected"],
        row["step"],
        as_site(row.get("site")),
    )
