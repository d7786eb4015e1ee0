"""check: the triage itself, from data to evaluation, and its report."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from sawbones import faults
from sawbones.diagnosis.ordering import settle
from sawbones.fixing import proposed
from sawbones.observe.environment import describe_environment
from sawbones.schema import CouldNotLook, Evidence, Finding, Report, Run, Site
from sawbones.triage.grades import Grades
from sawbones.triage.probes import PROBES, Bench, CannotTell, Probe, reason_for_no_progress
from sawbones.triage.recording import record
from sawbones.triage.subject import Subject, as_subject

LAYERS = ("data", "pipeline", "model", "loss", "optimizer", "loop", "evaluation")
STEPS = 30
CONFIDENCE = {"proven": 0.97, "likely": 0.9, "suspected": 0.4}
# learning a batch by heart needs everything before it: it is asked with the loop
_LAST = "loss.wrong-loss"

Say = Callable[[str, str], None]


@dataclass(frozen=True)
class Triage:
    report: Report
    layers: tuple[str, ...]  # that were looked at, in order
    not_reached: tuple[str, ...] = ()

    @property
    def hard(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.report.findings if f.status != "suspected")

    @property
    def soft(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.report.findings if f.status == "suspected")


@dataclass
class _State:
    bench: Bench
    grades: Grades
    only: str
    steps: int
    say: Say
    findings: list[Finding] = field(default_factory=list)
    blind: list[CouldNotLook] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    run: Run | None = None
    error: BaseException | None = None

    def wanted(self, fault: str) -> bool:
        return fnmatch(fault, self.only) and self.grades.skips(fault) is None


def check(
    subject: Any,
    *,
    layers: tuple[str, ...] = LAYERS,
    only: str = "*",
    grades: Grades | None = None,
    keep_going: bool = False,
    steps: int = STEPS,
    seed: int = 0,
    say: Say = lambda layer, text: None,
) -> Triage:
    """The triage of a subject (see sawbones.Subject): in each layer the pieces first, then a
    recorded training. The random streams of the process are as before when it is done.
    """
    from sawbones.observe.random_streams import streams_put_back

    began = time.monotonic()
    whole = as_subject(subject)
    state = _State(Bench(whole, seed), grades or Grades(), only, steps, say)
    _record_opt_outs(state, layers)
    done: list[str] = []
    try:
        with streams_put_back():
            for layer in (name for name in LAYERS if name in layers):
                done.append(layer)
                _look(state, layer)
                if state.error is not None or (not keep_going and _fails(state)):
                    break
    except (
        Exception
    ) as error:  # the subject's own code: it is the patient, and its failure is the report
        state.error = error
    report = _report(whole, state, time.monotonic() - began)
    left = tuple(name for name in LAYERS if name in layers and name not in done)
    return Triage(report, tuple(done), left)


def _record_opt_outs(state: _State, layers: tuple[str, ...]) -> None:
    known = dict.fromkeys([*(c.fault for c in faults.all_checks()), *(p.fault for p in PROBES)])
    for fault in known:
        rule = state.grades.skips(fault)
        if rule is not None and fnmatch(fault, state.only) and fault.split(".")[0] in layers:
            state.blind.append(CouldNotLook(fault, f"opted out by {rule.said_by} {rule.glob}"))


def _fails(state: _State) -> bool:
    return any(state.grades.graded(f)[0].status != "suspected" for f in state.findings)


def _look(state: _State, layer: str) -> None:
    for probe in PROBES:
        asked_in = "loop" if probe.fault == _LAST else probe.layer
        if asked_in == layer and state.wanted(probe.fault):
            state.say(layer, probe.fault)
            _measure(state, probe)
    if _fails(state):
        return  # what was measured directly need not be read off a training as well
    wanted = [c for c in faults.all_checks() if c.layer == layer and state.wanted(c.fault)]
    if not wanted:
        return
    if state.run is None:
        state.say(layer, f"training for {state.steps} steps")
        state.run, state.error = record(state.bench.subject, state.steps, state.bench.seed)
        if (
            state.error is not None
        ):  # the layer of a crash is not known beforehand: all checks look at it
            wanted = [c for c in faults.all_checks() if state.wanted(c.fault)]
    state.say(layer, f"{len(wanted)} checks")
    for check in wanted:
        reading = faults.read(state.run, only=check.fault)
        state.findings += reading.findings
        state.blind += reading.could_not_look
        state.silent += reading.silent


def _direct(text: str) -> Evidence:
    """An assertion about a piece of the subject that did not hold."""
    return Evidence(text, "direct measurement", kind="exact", strength="clear")


def _measure(state: _State, probe: Probe) -> None:
    try:
        probe.act(state.bench)
    except AssertionError as failure:
        text = str(failure).split("\n")[0]
        fault, title, evidence = probe.fault, probe.title, [_direct(text)]
        if fault == _LAST:
            reason = reason_for_no_progress(state.bench)
            if reason is not None and state.wanted(reason[0]):
                fault = reason[0]
                title = (
                    f"The learning rate is too {fault.rsplit('-', 1)[1]}: one repeated batch "
                    "is not learned"
                )
                evidence.append(_direct(reason[1]))
        where = _where(state.bench.subject, fault)
        confidence = CONFIDENCE[probe.status]
        state.findings.append(
            Finding(fault, probe.status, confidence, title, where, tuple(evidence))
        )
    except CannotTell as unknown:
        state.blind.append(CouldNotLook(probe.fault, f"not to be told: {unknown}"))
    else:
        state.silent.append(probe.fault)


def _where(subject: Subject, fault: str) -> tuple[Site, ...]:
    """The factory of the layer's piece."""
    pieces = {
        "data": subject.data,
        "pipeline": subject.data,
        "model": subject.model,
        "loss": subject.loss,
    }
    piece = pieces.get(fault.split(".")[0], subject.optimizer)
    code = getattr(piece, "__code__", None) or getattr(
        getattr(piece, "__init__", None), "__code__", None
    )
    if code is None:
        return ()
    import linecache

    file = (
        os.path.relpath(code.co_filename) if os.path.isabs(code.co_filename) else code.co_filename
    )
    line = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    return (
        Site(
            file if not file.startswith("..") else code.co_filename,
            code.co_firstlineno,
            code.co_name,
            line,
        ),
    )


def _report(subject: Subject, state: _State, seconds: float) -> Report:
    standing, _ = settle(state.findings)
    graded = [state.grades.graded(finding) for finding in standing]
    notes = [*state.notes, *(note for _, note in graded if note)]
    notes += [
        f"{blind.fault}: {blind.why}" for blind in state.blind if blind.why.startswith("opted out")
    ]
    findings = tuple(sorted((f for f, _ in graded), key=lambda f: f.status == "suspected"))
    certain = any(f.status != "suspected" for f in findings)
    if state.error is not None:
        place = traceback.extract_tb(state.error.__traceback__)[-1:]
        at = f" at {place[0].filename}:{place[0].lineno}" if place else ""
        first = str(state.error).split("\n")[0][:300]
        notes.append(f"the subject ended with {type(state.error).__name__}{at}: {first}")
    fired = {f.fault for f in state.findings}
    looked = tuple(dict.fromkeys(f for f in state.silent if f not in fired))
    blind = tuple(b for b in state.blind if b.fault not in fired and b.fault not in looked)
    unseen = [b for b in blind if not b.why.startswith("opted out")]
    if unseen and not looked and not findings:
        notes.append(f"none of {len(unseen)} checks could look")
    verdict = (
        "crashed"
        if state.error is not None
        else "sick"
        if certain
        else "healthy"
        if looked or findings or not unseen
        else "inconclusive"
    )
    report = Report(
        verdict,
        subject.name or "subject",
        state.run.num_steps if state.run is not None else 0,
        round(seconds, 3),
        findings,
        (),
        blind,
        looked,
        describe_environment(),
        tuple(notes),
    )
    return report if state.run is None else proposed(report, state.run, Path.cwd())
