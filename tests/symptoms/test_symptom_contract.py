"""What every symptom must do, whatever it looks for."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatch

import numpy as np
import pytest
from drawn import drawn, falling

from sawbones import symptoms
from sawbones.schema import LAYERS, Ending, Run, faults
from sawbones.schema.signals import SIGNALS, without

ILL = {
    "non-finite",
    "crashes",
    "hangs",
    "diverges",
    "does-not-learn",
    "does-not-generalise",
    "out-of-memory",
}
NOTABLE = {
    "learns-slowly",
    "spikes",
    "saw-tooth",
    "plateau-then-jump",
    "overfits",
    "too-good",
    "evaluation-disagrees",
    "not-repeatable",
    "one-class",
    "waits-for-data",
    "memory-grows",
    "slows-down",
}
HEADINGS = ("## What it measures", "## Null", "## What it may mean", "## First commands")


def test_the_list_is_closed() -> None:
    named = {watched.symptom: watched.cls for watched in symptoms.all_symptoms()}
    assert {name for name, cls in named.items() if cls == "ill"} == ILL
    assert {name for name, cls in named.items() if cls == "notable"} == NOTABLE


@pytest.mark.parametrize("watched", symptoms.all_symptoms(), ids=lambda w: w.symptom)
class TestEverySymptom:
    def test_says_what_it_measures_against_what_and_what_it_may_mean(
        self, watched: symptoms.Watched
    ) -> None:
        places = [watched.page.index(heading) for heading in HEADINGS]
        assert places == sorted(places)

    def test_knows_causes_that_exist(self, watched: symptoms.Watched) -> None:
        known = [fault.id for fault in faults().values()]
        for cause in watched.causes:
            assert cause.split(".")[0] in {*LAYERS, "*"}
            assert any(fnmatch(fault, cause) for fault in known), cause

    def test_could_not_look_where_a_signal_that_it_needs_is_missing(
        self, watched: symptoms.Watched
    ) -> None:
        for signal in watched.needs:
            run = without(drawn(falling()), signal)
            why = {item.symptom: item.why for item in symptoms.read(run).could_not_see}
            assert SIGNALS[signal][0] in why[watched.symptom] or why[watched.symptom].startswith(
                "needs "
            )

    def test_is_silent_or_blind_on_a_run_that_learns(self, watched: symptoms.Watched) -> None:
        found = symptoms.read(drawn(falling()), strict=True).symptoms
        assert watched.symptom not in {symptom.symptom for symptom in found}

    def test_gives_no_answer_on_a_run_without_a_step(self, watched: symptoms.Watched) -> None:
        run = Run("train.py", (), "run", {}, Ending("finished", 0))
        assert not symptoms.read(run, strict=True).symptoms


def test_a_symptom_that_fails_could_not_look_and_the_others_speak() -> None:
    broken = drawn(np.full(60, np.nan), columns={"memory_mb": np.full((60, 2, 2), np.nan)})
    short = replace(broken, steps={k: v for k, v in broken.steps.items() if k != "step_ms"})
    signs = symptoms.read(short)
    assert [symptom.symptom for symptom in signs.symptoms] == ["non-finite"]
    why = {item.symptom: item.why for item in signs.could_not_see}
    assert why["slows-down"] == "the look itself failed: KeyError: 'step_ms'"
