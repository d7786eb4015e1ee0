"""Causes before consequences."""

from __future__ import annotations

from sawbones.diagnosis.ordering import settle
from sawbones.schema import Evidence, Finding


def finding(fault, status="likely", confidence=0.9):
    return Finding(fault, status, confidence, f"title of {fault}", evidence=(Evidence("seen"),))


def test_a_consequence_becomes_evidence_of_its_cause():
    standing, folded = settle(
        [finding("optimizer.lr-too-high", "proven"), finding("loop.no-zero-grad", "likely")]
    )
    assert [f.fault for f in standing] == ["loop.no-zero-grad"]
    assert [f.fault for f in folded] == ["optimizer.lr-too-high"]
    assert any("optimizer.lr-too-high" in e.text for e in standing[0].evidence)


def test_what_is_settled_once_more_says_a_consequence_once():
    first, folded = settle(
        [finding("optimizer.lr-too-high", "proven"), finding("loop.no-zero-grad", "likely")]
    )
    again, _ = settle(first + folded)
    assert [e.text for e in again[0].evidence] == [e.text for e in first[0].evidence]


def test_a_mere_suspicion_does_not_swallow_a_proven_finding():
    standing, _ = settle(
        [finding("optimizer.lr-too-high", "proven"), finding("loop.no-zero-grad", "suspected", 0.4)]
    )
    assert "optimizer.lr-too-high" in [f.fault for f in standing]


def test_findings_are_ordered_by_support_then_by_layer():
    standing, _ = settle(
        [
            finding("optimizer.decay-on-norm-bias"),
            finding("data.labels-misaligned"),
            finding("loss.double-softmax", "proven"),
        ]
    )
    assert [f.fault for f in standing] == [
        "loss.double-softmax",
        "data.labels-misaligned",
        "optimizer.decay-on-norm-bias",
    ]


def test_the_same_fault_twice_is_one_finding_with_both_places():
    standing, _ = settle(
        [finding("loss.double-softmax"), finding("loss.double-softmax", confidence=0.5)]
    )
    assert len(standing) == 1


def test_of_two_that_explain_each_other_and_are_equally_sure_one_stands():
    pair = [
        finding("loop.exploding-gradients", "proven", 0.97),
        finding("optimizer.lr-too-high", "proven", 0.97),
    ]
    standing, folded = settle(pair)
    assert (len(standing), len(folded)) == (1, 1)


def test_what_explains_the_crash_stands_above_what_is_merely_surer():
    refused = Evidence("RuntimeError", "crash", kind="refused", strength="clear")
    crash = Finding("model.shape-mismatch", "likely", 0.9, "does not fit", evidence=(refused,))
    standing, _ = settle([finding("loop.nondeterminism", "proven"), crash])
    assert [f.fault for f in standing] == ["model.shape-mismatch", "loop.nondeterminism"]


def test_that_a_run_does_not_repeat_stands_below_what_acts_in_it_and_above_mere_suspicion():
    standing, _ = settle(
        [
            finding("loop.nondeterminism", "proven", 0.97),
            finding("data.labels-misaligned", "likely"),
            finding("pipeline.padding-waste", "suspected", 0.3),
        ]
    )
    assert [f.fault for f in standing] == [
        "data.labels-misaligned",
        "loop.nondeterminism",
        "pipeline.padding-waste",
    ]


def test_what_made_the_values_nan_stands_above_the_call_that_refused_them():
    refused = Evidence("ValueError", signal="crash", kind="refused", strength="clear")
    call = Finding("loss.value-range", "suspected", 0.5, "refused", evidence=(refused,))
    standing, folded = settle([call, finding("loss.unstable-log", "proven")])
    assert [f.fault for f in standing] == ["loss.unstable-log"]
    assert [f.fault for f in folded] == ["loss.value-range"]
