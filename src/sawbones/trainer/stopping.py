"""Early stopping, and which checkpoint is the best."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class EarlyStopping:
    """Watches one number that should grow. An improvement smaller than `min_delta` does not reset
    the patience.
    """

    patience: int = 0  # 0: never stop
    min_delta: float = 0.0
    best: float | None = None
    best_step: int = 0
    reference: float | None = None  # the value the next improvement is measured from
    waited: int = 0

    def update(self, score: float, step: int) -> bool:
        """Take in one evaluation; True when it is the best so far. NaN is never an improvement."""
        is_best = self.best is None or score > self.best
        if is_best and score == score:
            self.best, self.best_step = score, step
        if score == score and (self.reference is None or score > self.reference + self.min_delta):
            self.reference, self.waited = score, 0
        else:
            self.waited += 1
        return is_best and score == score

    @property
    def should_stop(self) -> bool:
        return self.patience > 0 and self.waited >= self.patience

    def state(self) -> dict[str, float | int | None]:
        return {
            "best": self.best,
            "best_step": self.best_step,
            "reference": self.reference,
            "waited": self.waited,
        }

    def restore(self, record: dict[str, float | int | None]) -> None:
        self.best, self.reference = record["best"], record["reference"]
        self.best_step, self.waited = int(record["best_step"] or 0), int(record["waited"] or 0)
