"""What to observe, and how deeply. Plain values, so that a parent process can hand them to a
child.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

# Step 0 often differs (lazy layers, masks built outside); the others catch what only training
# brings out. On a large model a
# deep step costs six to ten ordinary ones: there those after the first are put off until the run is
# long enough for them.
RUN_DEEP_STEPS = (0, 3)
DIAGNOSE_DEEP_STEPS = (0, 1, 2, 5, 10, 20, 40, 80, 150)


@dataclass(frozen=True)
class Options:
    deep_steps: tuple[int, ...] = RUN_DEEP_STEPS
    deep_every: int = 1000  # after the listed ones
    paced: bool = (
        False  # deep steps after the first wait until the run is long enough for what they cost
    )
    probe: bool = False  # property tests on a copy of the model, on the first deep step
    journal: bool = (
        False  # keep the operators of the current step, to name the first non-finite one
    )
    answers: bool = False  # keep what is evaluated, without the operators that make a score of it
    samples: bool = False  # keep a few examples of the latest batch beside the recording, to show
    sources: bool = False  # follow the script's data line by line until it trains
    max_steps: int | None = None  # end the run after this many optimizer steps
    max_seconds: float | None = None
    eager: bool = False  # what the script compiles runs eagerly, so that deep steps can look inside
    full_every: int = 50
    batch_samples: int = 40  # batches whose values are kept for the label probe; 0 switches it off
    quiet: bool = False
    extra: dict[str, Any] = field(default_factory=dict)

    def is_deep(self, step: int) -> bool:
        return step in self.deep_steps or (
            step > 0 and self.deep_every > 0 and step % self.deep_every == 0
        )

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Options:
        raw = json.loads(text)
        raw["deep_steps"] = tuple(raw["deep_steps"])
        return Options(**raw)


def running() -> Options:
    """Where the run matters: `sawbones run` and `sawbones.watch`."""
    return Options(paced=True)


def diagnosing(**changes: Any) -> Options:
    usual = {
        "deep_steps": DIAGNOSE_DEEP_STEPS,
        "probe": True,
        "journal": True,
        "sources": True,
        "eager": True,
        "full_every": 10,
    }
    return Options(**{**usual, **changes})
