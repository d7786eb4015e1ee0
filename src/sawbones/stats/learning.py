"""Whether a run has learned anything: its loss against that of the best constant answer."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import numpy.typing as npt

from sawbones.schema import Run
from sawbones.schema.labels import LabelsTold
from sawbones.stats.evaluations import train_losses_called, validation_curve
from sawbones.stats.series import end_level, fell

CLASSES = {"cross_entropy", "nll_loss", "binary_cross_entropy_with_logits", "binary_cross_entropy"}
VALUES = {"mse_loss"}


def constant_answer(run: Run, probe: LabelsTold) -> float | None:
    """The loss of always giving the same answer, where the labels and the loss of the run say what
    it is.
    """
    base, called = probe.baseline, train_losses_called(run)
    weighted = any(
        e.data.get("weight") or e.data.get("pos_weight")
        for e in run.of_kind("loss")
        if e.phase == "train"
    )
    reduced = {e.data.get("reduction", "mean") for e in run.of_kind("loss") if e.phase == "train"}
    per_pass = Counter((e.step, e.microstep) for e in run.of_kind("loss") if e.phase == "train")
    several = sum(n > 1 for n in per_pass.values()) > len(per_pass) / 2  # terms of a sum
    fitting = CLASSES if probe.kind == "classes" else VALUES
    if (
        not base
        or weighted
        or several
        or len(called) != 1
        or not called <= fitting
        or reduced - {"mean", None}
    ):
        return None
    return base


def learned(run: Run, probe: LabelsTold) -> bool:
    """The loss has come clearly below that of a constant answer, at the end or on samples not seen
    before.

    Repeated samples can be learned by heart to some degree, whatever their labels. Where the loss
    of a constant answer is not known, any fall by 15 % counts.
    """
    base = constant_answer(run, probe)
    if base is not None and held_out_loss(run) < 0.85 * base:
        return True
    fresh = fresh_losses(run)
    if base is None or len(fresh) < 15:
        return fell(run.losses, 0.15)
    return end_level(run.losses) < 0.8 * base or new_samples_learned(fresh, base, probe)


def new_samples_learned(fresh: npt.NDArray[np.float64], base: float, probe: LabelsTold) -> bool:
    late = fresh[-max(1, round(0.4 * len(fresh))) :]
    # The variance of a few hundred targets is itself uncertain. Where the probe finds nothing at
    # all, a fall has to exceed that.
    noise = math.hypot(base * math.sqrt(2.0 / probe.num), float(late.std()) / math.sqrt(len(late)))
    unsure = probe.kind == "values" and probe.z < 1.0 and base - float(late.mean()) < 2.0 * noise
    return end_level(fresh, 0.4) < 0.93 * base and not unsure


def held_out_loss(run: Run) -> float:
    """The last loss of the trained kind that an evaluation took of samples the training has not
    seen; infinite without one.
    """
    _, means, _ = validation_curve(run)
    trained = {p for b in run.batches if b.phase == "train" for p in b.fingerprints}
    tested = {p for b in run.batches if b.phase == "eval" for p in b.fingerprints}
    known = len(means) > 0 and bool(np.isfinite(means[-1])) and not tested & trained
    return float(means[-1]) if known else float("inf")


def fresh_losses(run: Run) -> npt.NDArray[np.float64]:
    """Losses of steps whose samples were mostly new; all of them where nothing is known about the
    samples.
    """
    known: set[int] = set()
    new_at: dict[int, bool] = {}
    for batch in run.batches:
        if batch.phase == "train" and batch.fingerprints:
            prints = set(batch.fingerprints)
            new_at[batch.step] = len(prints - known) >= 0.8 * len(prints) and new_at.get(
                batch.step, True
            )
            known |= prints
    steps = run.steps["step"]
    if not new_at:
        return np.asarray(run.losses, np.float64)
    chosen = [bool(new_at.get(int(s), False)) for s in steps]
    fresh: npt.NDArray[np.float64] = np.asarray(run.losses, np.float64)[np.array(chosen, bool)]
    return fresh
