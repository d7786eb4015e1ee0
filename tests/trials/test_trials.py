"""Each experiment confirms on a script with its fault and does not on one without."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
from trial_cases import CASES, SCRIPTS, Case, Hospital

from sawbones import faults, trials
from sawbones.trials import remedies

# Cases come in pairs, so every third one is now a fault, now a twin.
_PARAMS = [
    pytest.param(case, marks=() if i % 3 == 0 else pytest.mark.long) for i, case in enumerate(CASES)
]


@pytest.mark.parametrize("case", _PARAMS, ids=str)
def test_verdict(case: Case, hospital: Hospital) -> None:
    verdict = hospital.verdict(case)
    assert verdict.outcome == case.outcome, verdict
    assert verdict.experiment == case.experiment
    assert verdict.result


def test_a_learning_rate_is_tried_on_from_the_one_that_helped(hospital: Hospital) -> None:
    named = ("learning_rate_tenth", "learning_rate_raised")
    cases = [c for c in CASES if c.experiment in named and c.outcome == "confirmed"]
    found = {case.experiment: hospital.verdict(case) for case in cases}
    high, low = found["learning_rate_tenth"], found["learning_rate_raised"]
    assert high.details["factor"] <= 0.1 and f"{high.details['factor']:g} of" in high.result
    assert low.details["factor"] >= 100 and f"{low.details['factor']:.3g} times" in low.result


def test_no_experiment_changed_the_scripts_it_ran(hospital: Hospital) -> None:
    # Here and not beside its like: the process that runs this file has these verdicts already.
    for case in CASES:
        if case.script == "resume":  # those that save checkpoints
            hospital.verdict(case)
    assert {path.suffix for path in SCRIPTS.rglob("*")} == {".py"}


def test_every_experiment_has_a_fault_and_a_twin() -> None:
    for name in trials.names():
        outcomes = {case.outcome for case in CASES if case.experiment == name}
        assert "confirmed" in outcomes, f"{name}: no script that it confirms on"
        assert outcomes & {"refuted", "open"}, f"{name}: no script that it does not confirm on"


def test_every_experiment_says_what_confirms_it() -> None:
    for name in trials.names():
        page = (importlib.import_module(trials.module_of(name)).__doc__ or "").lower()
        assert "confirmed" in page, name


def test_every_remedy_says_what_it_changes_and_can_be_installed() -> None:
    for module in pkgutil.iter_modules(remedies.__path__):
        loaded = importlib.import_module(f"{remedies.__name__}.{module.name}")
        assert loaded.__doc__ and callable(loaded.install), module.name


def test_checks_name_experiments_that_exist() -> None:
    named = {check.experiment for check in faults.all_checks() if check.experiment}
    assert named <= set(trials.names())
