"""Leave out a last batch that is too small; how large the others are, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import set_keyword
from sawbones.fixing.expressions import calls_near
from sawbones.fixing.recipes import Case, Change, Decide


def fix(case: Case) -> Iterator[Change | Decide]:
    if case.run.ending.kind == "exception":
        for source, call in calls_near(case, "DataLoader"):
            yield Change(
                "Leave out the last batch where it is not full: drop_last=True.",
                (set_keyword(source, call, "drop_last", "True"),),
            )
    yield Decide(
        "Decide between larger batches (more memory, and a learning rate that fits them), "
        "GroupNorm or LayerNorm in the place of BatchNorm (the model changes, and saved weights "
        "no longer fit), and momentum=0.01 in BatchNorm (evaluation calms down, training stays "
        "as noisy)."
    )
