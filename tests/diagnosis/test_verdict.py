"""The one word for a run, by precedence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sawbones.diagnosis.verdict import judge
from sawbones.schema import Ending, Finding, Run, Symptom
from sawbones.schema.one_off import HeldBack

ILL = Symptom("does-not-learn", "ill", "the loss stays at 1.37")
NOTABLE = Symptom("spikes", "notable", "the loss jumps at step 40")
LIKELY = Finding("loop.no-zero-grad", "likely", 0.9, "zero_grad is never called")
SUSPECTED = Finding("loop.no-zero-grad", "suspected", 0.4, "zero_grad is never called")


def run(kind: str = "finished", steps: int = 50, **facts: Any) -> Run:
    message = str(facts.pop("message", "")) or None
    ending = Ending(kind, message=message)
    return Run("train.py", (), "", {}, ending, steps={"step": np.arange(steps)}, **facts)


def verdict(seen: Run, *findings: Finding, **more: object) -> str:
    return judge(seen, findings, **{"looked": 60, "blind": 20, **more}).verdict  # type: ignore[arg-type]


def test_a_run_that_ended_well_without_findings_is_healthy():
    assert verdict(run()) == "healthy"
    assert verdict(run(), SUSPECTED) == "healthy"
    assert verdict(run(), symptoms=[NOTABLE]) == "healthy"


def test_each_verdict_goes_before_the_ones_behind_it():
    assert verdict(run("exception"), LIKELY, symptoms=[ILL]) == "crashed"
    assert verdict(run(steps=0), LIKELY, symptoms=[ILL], interrupted=True) == "sick"
    assert verdict(run(steps=0), SUSPECTED, symptoms=[ILL], interrupted=True) == "unexplained"
    assert verdict(run(steps=0), SUSPECTED) == "inconclusive"


def test_an_illness_that_a_finding_explains_is_not_unexplained():
    explained = Symptom("diverges", "ill", "the loss grows", explained_by="optimizer.lr-too-high")
    assert verdict(run(), symptoms=[explained]) == "healthy"


def test_a_script_that_gave_up_by_itself_is_crashed_unless_its_illness_is_known():
    assert verdict(run("exit")) == "crashed"
    assert verdict(run("exit"), LIKELY) == "sick"


def test_a_process_that_died_under_its_script_is_a_crash():
    assert verdict(run("killed", aborted="Fatal Python error")) == "crashed"
    assert verdict(run("killed", died=-9)) == "crashed"


@pytest.mark.parametrize("kind", ["budget", "interrupted", "terminated", "killed", "hang"])
def test_a_run_that_was_cut_before_the_script_ended_is_inconclusive(kind):
    judged = judge(run(kind, 5000), (), looked=60, blind=20)
    assert judged.verdict == "inconclusive"
    assert "after 5000 steps, before the script ended" in judged.why
    assert verdict(run(kind, 5000), LIKELY) == "sick"


def test_the_reason_is_that_of_the_cut():
    late = judge(run("budget", message="seconds"), (), looked=60, blind=20)
    assert late.why.startswith("the time for observing it was up")
    live = judge(run("budget", message="still recording"), (), looked=60, blind=20)
    assert live.why == "it is still being recorded after 50 steps, before the script ended"


def test_a_number_of_steps_that_the_user_asked_for_is_no_cut():
    assert verdict(run("budget", 5, message="steps")) == "healthy"


def test_an_interrupted_diagnosis_is_inconclusive_however_much_was_seen():
    assert verdict(run("terminated", 5000), interrupted=True) == "inconclusive"
    assert verdict(run("exception"), interrupted=True) == "inconclusive"


def test_a_script_that_died_of_what_was_held_back_is_inconclusive_and_says_what():
    held = (HeldBack("network", "data.example:443", "train.py:3"),)
    judged = judge(run("exception", held_back=held), (), looked=60, blind=20)
    assert judged.verdict == "inconclusive"
    assert judged.why == (
        "a connection to data.example:443 (train.py:3) was held back; to allow it: --allow network"
    )
    assert verdict(run(held_back=held)) == "healthy", "it did without"


def test_most_checks_blind_is_inconclusive():
    judged = judge(run(), (), looked=5, blind=35)
    assert (judged.verdict, judged.why) == ("inconclusive", "only 5 of 40 checks could look")
