"""The line on leaks in a report that found none."""

from __future__ import annotations

from dataclasses import replace

from sawbones.diagnosis.leaks import leaks_line
from sawbones.faults import Reading
from sawbones.schema import CouldNotLook, Ending, Event, Finding, Run
from sawbones.schema.held import Strangers
from sawbones.schema.sources import Moved, SourceChange

SEEN = Reading(
    (),
    (CouldNotLook("evaluation.leak-group", "no column of ids was found. Nothing to do"),),
    ("evaluation.leak-contamination", "evaluation.leak-target", "loss.wrong-sign"),
)
EVALUATED = Event(1, "forward", 5, 0, "eval", 0.1)
RUN = Run("train.py", (), "", {}, Ending("finished", 0), events=(EVALUATED,))


def test_kinds_that_were_tried_and_those_that_could_not_be_are_named() -> None:
    assert leaks_line(RUN, SEEN, ()) == (
        "no leak of these kinds: contamination, target; not tried: group (no column of ids was "
        "found)"
    )


def test_a_kind_whose_trial_was_refused_was_tried_in_part() -> None:
    refused = SourceChange(labels=Moved("refused", "the rows were not found"))
    line = leaks_line(replace(RUN, source_change=refused), SEEN, ())
    assert line.startswith("no leak of these kinds: contamination, target (in part); not tried:")
    assert line.endswith("; no trial for target: the rows were not found")


def test_a_trial_that_no_time_was_left_for_is_said() -> None:
    tried = replace(SEEN, silent=("evaluation.leak-temporal",))
    refused = Strangers("date", "time", 8, "refused", "no time is left. Give it more")
    line = leaks_line(replace(RUN, strangers=(refused,)), tried, ())
    assert line.startswith("no leak of these kinds: temporal (in part)")
    assert line.endswith("no trial for temporal: no time is left")


def test_a_run_without_evaluation_has_no_score_to_doubt() -> None:
    assert leaks_line(replace(RUN, events=()), SEEN, ()) == ""


def test_a_leak_that_was_found_speaks_for_itself() -> None:
    found = Finding("evaluation.leak-group", "likely", 0.9, "t", (), ())
    assert leaks_line(RUN, SEEN, (found,)) == ""
