"""Whether samples that are evaluated lie right beside samples that are trained on, far nearer than
anything else does.

For each evaluated sample: the distance to the nearest trained one over that to the tenth. Between
independent samples the two distances differ little; a copy with a little noise lies a fraction as
far away as any other sample. Samples of a smooth curve (one angle, one moment) have their
neighbours at all distances; behind the copies of a sample there is nothing for a while.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.signals.label_probe import features
from sawbones.schema import samples as kinds

MAX_TRAINED = 3000
MAX_EVALUATED = 300
MAX_LOOKED_AT = 6000  # of the evaluated, known ones among them
MIN_WIDTH = 8
_NEAR = 0.2
_NEIGHBOURS = 10


class NearCopies:
    def __init__(self) -> None:
        self._rows: dict[str, dict[bytes, Any]] = {"train": {}, "eval": {}}
        self._width = 0
        self._looked_at = 0

    def saw(self, phase: str, given: Any) -> None:
        kept = self._rows.get(phase)
        limit = MAX_TRAINED if phase == "train" else MAX_EVALUATED
        if kept is None or len(kept) >= limit:
            return
        floats = [
            t
            for _, t in tensors_in(given)
            if t.is_floating_point() and t.dim() >= 2 and t.device.type == "cpu"
        ]
        if not floats:
            return
        rows = max(floats, key=lambda t: t.numel()).detach()
        width = rows[0].numel() if len(rows) else 0
        self._width = self._width or width
        if width != self._width or width < MIN_WIDTH:
            return
        known: dict[bytes, Any] = {}
        if phase == "eval":  # a score on the training part leaves room for the other
            known = self._rows["train"]
            rows = rows[: max(0, MAX_LOOKED_AT - self._looked_at)]
            self._looked_at += len(rows)
        for row in rows:
            values = features(row)
            if len(kept) < limit and values.tobytes() not in known:
                kept.setdefault(values.tobytes(), values)

    def record(self) -> kinds.NearCopies | None:
        """Of the evaluated samples that were not trained on as they are, the share that has a near
        copy among the trained ones.
        """
        trained = self._rows["train"]
        new = [values for key, values in self._rows["eval"].items() if key not in trained]
        if len(trained) < 10 * _NEIGHBOURS or len(trained) >= MAX_TRAINED or len(new) < 40:
            return None
        x, y = np.stack(list(trained.values())), np.stack(new)
        squares = (y**2).sum(1)[:, None] + (x**2).sum(1)[None, :] - 2.0 * y @ x.T
        nearest = np.sqrt(np.maximum(np.sort(squares, axis=1)[:, :_NEIGHBOURS], 0.0))
        first, tenth = nearest[:, 0], nearest[:, -1]
        known = tenth > 1e-6 * max(float(np.abs(x).max()), 1e-12)
        if known.sum() < 40:
            return None
        ratio = first[known] / tenth[known]
        behind = (nearest[known, :-1] < _NEAR * nearest[known, 1:]).any(1)
        return kinds.NearCopies(
            int(known.sum()),
            len(x),
            near=float(np.mean(ratio < _NEAR)),
            middle=float(np.median(ratio)),
            alone=float(np.mean(behind)),
        )
