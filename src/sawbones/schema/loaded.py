"""State that was put back into a model, an optimizer, ..."""

from __future__ import annotations

from dataclasses import dataclass

from sawbones.schema.site import Site


@dataclass(frozen=True, slots=True)
class Restored:
    """One call of load_state_dict or its like; of a model, in numbers of tensors."""

    kind: str  # model, optimizer, scheduler, scaler, rng
    index: int = -1  # of the optimizer
    step: int = 0
    seq: int = 0  # of the events up to then
    site: Site | None = None
    empty: bool = False  # the state of an optimizer that has not stepped
    given: int | None = None  # None: not weights, or torch did not say what became of them
    taken: int = 0
    missing: int = 0  # of the model's own, that were not given
    same: int = 0  # of those that were taken, in the model's own memory before
    first_missing: str = ""
    first_unexpected: str = ""
    of_step: int | None = None  # at which a model was asked for these very values; None: not known

    @property
    def own(self) -> int:
        """Tensors of the model."""
        return self.taken + self.missing

    @property
    def is_own(self) -> bool:
        """All that was taken is the model's own memory: nothing changes."""
        return self.same == self.taken


@dataclass(frozen=True, slots=True)
class KeptWeights:
    """What a script keeps at its best score, and reads when training is over; in tensors."""

    tensors: int
    same: int  # of those, in the memory of what is trained
    trained: int  # by the optimizer whose steps it was looked at after
    since: int  # steps that were over when it was kept for the last time
    until: int  # the latest step after which it was looked at
    site: Site  # that keeps it
    read: Site  # that reads it in the end

    @property
    def is_own(self) -> bool:
        """All that is kept, or all that is trained and next to it at most buffers."""
        return self.same > 0 and (self.same == self.tensors or self._is_whole)

    @property
    def is_passed(self) -> bool:
        """Steps were taken after it was kept for the last time."""
        return self.since < self.until

    @property
    def _is_whole(self) -> bool:
        return self.tensors - self.same < self.trained <= self.same
