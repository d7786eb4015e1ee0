"""Trials of scripts that are another run each time: what a run without the remedy gains as well
proves nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sawbones.diagnosis.placebo import against_placebo
from sawbones.schema import Ending, Run, Verdict
from sawbones.schema.one_off import Difference, TwinRun
from sawbones.trials.bench import Bench, Patient
from sawbones.trials.child import Remedy

REORDERED = Difference("batch_order", 0)
LAST_BITS = Difference("loss", 0, first=1.0, second=1.0000001, relative=1e-7)


def _run(differs: Difference | None) -> Run:
    twin = TwinRun(25, (), None, differs)
    return Run("train.py", (), "", {}, Ending("finished"), twin_run=twin)


@pytest.mark.parametrize(
    ("differs", "untreated", "outcome"),
    [
        (None, [], "confirmed"),
        (LAST_BITS, [], "confirmed"),
        (REORDERED, [("refuted", 1.9), ("refuted", 2.1)], "confirmed"),
        (REORDERED, [("refuted", 1.9), ("refuted", 1.4)], "open"),
        (REORDERED, [("confirmed", 0.9)], "open"),
    ],
)
def test_a_gain_has_to_exceed_that_of_runs_without_the_remedy(
    tmp_path: Path,
    differs: Difference | None,
    untreated: list[tuple[str, float]],
    outcome: str,
) -> None:
    ends = iter(untreated)

    def trial() -> Verdict:
        said, end = next(ends)
        return Verdict("t", said, f"ends at {end}", 2.0, end)

    first = Verdict("t", "confirmed", "ends at 1 instead of 2", 2.0, 1.0)
    with Bench(Patient("train.py", (), tmp_path), 10) as bench:
        verdict = against_placebo(bench, trial, _run(differs), first)
    assert verdict.outcome == outcome, verdict.result
    assert not list(ends)


def test_without_remedies_the_script_runs_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "w = torch.ones(1, requires_grad=True)\n"
        "optimizer = torch.optim.SGD([w], lr=0.5)\n"
        "for _ in range(3):\n"
        "    optimizer.zero_grad()\n"
        "    (w * w).sum().backward()\n"
        "    optimizer.step()\n"
    )
    slower = [Remedy("learning_rate", {"factor": 0.1})]
    with Bench(Patient("train.py", (), tmp_path), 60) as bench:
        with bench.without_remedies():
            plain = bench.rerun(slower)
        treated = bench.rerun(slower)
    assert plain.steps["lr"][0] == 0.5 and treated.steps["lr"][0] == pytest.approx(0.05)
