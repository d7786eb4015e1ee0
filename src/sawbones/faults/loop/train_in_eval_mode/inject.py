"""Nobody switches the model back to training mode after an evaluation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import remove
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, acts_by_mode, is_in, statements

LEVEL = 3
MAY_LOOK_BETTER = True
TRIAL = "train-mode"


def inject(source: Source) -> Iterator[Edits]:
    if acts_by_mode(source) and statements(source, "eval"):
        for statement in statements(source, "train"):
            if is_in(source, statement, ast.For):
                yield (remove(source, statement),)
