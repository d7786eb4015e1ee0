"""diagnose: a bounded debugging session on one script."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

from sawbones import faults, symptoms
from sawbones.capture.keeping import Capture
from sawbones.diagnosis.accepted import Accepted, Sorted, sort
from sawbones.diagnosis.differential import Outcome, seek, standing
from sawbones.diagnosis.early import EarlyLook
from sawbones.diagnosis.good import against_good, ill_itself, with_differences
from sawbones.diagnosis.held_back import held_back
from sawbones.diagnosis.later import ToTheEnd, cut_by_time
from sawbones.diagnosis.leaks import leaks_line
from sawbones.diagnosis.ordering import acts, settle
from sawbones.diagnosis.pinning import pin
from sawbones.diagnosis.placebo import against_placebo
from sawbones.diagnosis.progress import progress as learned
from sawbones.diagnosis.verdict import judge
from sawbones.masking import learn_arguments
from sawbones.observe.options import Options, diagnosing
from sawbones.schema import Cleared, Ending, Finding, Report, Run, Verdict
from sawbones.schema.errors import SawbonesError
from sawbones.stats.crash_account import account
from sawbones.trials import title_of, trial
from sawbones.trials.bench import Bench, ChildFailed, DiedAtOnce, Patient
from sawbones.trials.side_by_side import with_curves
from sawbones.trials.source_change import change_at_source
from sawbones.trials.strangers import keep_apart, without_filled
from sawbones.trials.twin import compare

# Of the budget. A run that is known to be ill by then leaves the rest to the trials; any other is
# watched to its end, or until there is just enough left for a second run and for changed rows.
WATCH_ILL_SHARE = 0.5
WATCH_SHARE = 0.8
TWIN_STEPS = 25
LEAKS = (
    "evaluation.leak-preprocessing",
    "evaluation.leak-target",
    "evaluation.preprocessing-mismatch",
)
APART = ("evaluation.leak-group", "evaluation.leak-temporal")
MORE_TIME = "sawbones diagnose --seconds N"
ALONE_SHARE = 0.4  # of the time left, where the trials wait while the script runs to its end
WATCHING_COSTS = 4.0  # times what the script takes alone, at most, on most scripts
CORES_TO_SHARE = 4  # below this, two children at once only slow each other down

Say = Callable[[str], None]
Found = Callable[[Finding], None]


@dataclass(frozen=True)
class Diagnosis:
    report: Report
    run: Run
    output: str = ""  # the end of what the script printed
    bundles: tuple[Path, ...] = ()  # captured steps, where they were asked for
    found: Sorted = field(
        default_factory=Sorted
    )  # findings that count and findings that are ignored

    def __repr__(self) -> str:
        """Short: a run holds a hundred thousand numbers."""
        report = self.report
        lines = [f"Diagnosis: {report.verdict}, {report.script}, {report.steps} steps"]
        for finding in report.findings:
            where = f" {finding.where[0]}" if finding.where else ""
            lines.append(f"  {finding.status} {finding.fault}{where}: {finding.title}")
        return "\n".join([*lines, "  all of it: .report, .show(); what was recorded: .run"])

    def _repr_html_(self) -> str:
        """Under a cell of a notebook."""
        from sawbones.report.card import card

        return card(self.report, self.run)

    def show(self) -> None:
        """The whole report: a page under the cell in a notebook, text in a terminal."""
        from sawbones.diagnosis.showing import show

        show(self.report, self.run)


def diagnose_script(
    script: str,
    argv: tuple[str, ...] = (),
    *,
    working_folder: Path | None = None,
    seconds: float = 600.0,
    steps: int | None = None,
    experiments: bool = True,
    only: str = "*",
    num_ranks: int = 1,
    allow: tuple[str, ...] = (),
    say: Say = lambda text: None,
    progress: Callable[[Path], None] | None = None,
    keep_run: Path | None = None,
    capture: Capture | None = None,
    accepted: Accepted | None = None,
    good: Run | None = None,
    found: Found = lambda finding: None,
    first: bool = False,
) -> Diagnosis:
    """`found` hears of each cause the moment it is proven. `first`: end with the first one."""
    began = time.monotonic()
    learn_arguments(argv)
    patient = Patient(script, argv, working_folder or Path.cwd(), num_ranks)
    with Bench(patient, seconds, allow, partial=True) as bench:
        say(str(bench.isolation))
        say("observing")
        watch_seconds = seconds * (WATCH_SHARE if experiments else 1.0)
        for_trials = seconds * (1.0 - WATCH_ILL_SHARE) if experiments else 0.0
        try:
            observed = keep_run or bench.scratch.run_folder()
            attached = capture.attached(patient.working_folder) if capture is not None else ()
            options = diagnosing(max_steps=steps)
            told = Told(found)
            early = EarlyLook(only, told.proven)

            def watched(folder: Path) -> bool:
                if progress is not None:
                    progress(folder)
                early.look(folder)
                seen_enough = early.is_ill and bench.seconds_left < for_trials
                return seen_enough or (first and told.any_yet())

            run = bench.execute(
                options, attached, seconds=watch_seconds, progress=watched, run_folder=observed
            )
        except ChildFailed as error:
            return _without_run(bench, script, argv, time.monotonic() - began, error)
        output = bench.log_tail
        bundles = (
            capture.kept(observed, script, moved=keep_run is None) if capture is not None else ()
        )
        observed_run, reading = run, faults.read(run, only)
        told.proven(reading.findings)
        experiments = experiments and not (first and told.faults)
        later = _to_the_end(bench, run, say) if experiments else None
        run = later.joined(run) if later is not None and later.failed_by_now() else run
        # Two runs that differ explain no exception.
        asked = fnmatch("loop.nondeterminism", only) and run.ending.crash is None
        if experiments and asked and not bench.interrupted:
            run = with_twin(bench, run, say)
        # First the one that is only made where something speaks for it: time may run out.
        if experiments and not bench.interrupted and any(fnmatch(f, only) for f in APART):
            run = with_strangers(bench, run, say)
        if experiments and not bench.interrupted and any(fnmatch(f, only) for f in LEAKS):
            run = with_source_change(bench, run, say)
        bench.baseline = run
        if run is not observed_run:  # further runs have added something to read
            reading = faults.read(run, only)
        findings = list(reading.findings)
        refuted: list[Finding] = []
        open_questions: list[str] = []
        if experiments and not bench.interrupted:
            told.proven(findings)

            def stop() -> bool:
                return (first and told.any_yet()) or (later is not None and later.failed_by_now())

            findings, refuted, open_questions = decide(bench, run, findings, say, told, stop)
        if later is not None:
            if any(f.status in ("likely", "proven") and acts(f) for f in findings):
                later.end()
            joined = later.joined(run)
            reading = faults.read(joined, only) if joined is not run else reading
            run = joined
            known = {f.fault for f in (*findings, *refuted)}
            findings += [f for f in reading.findings if f.fault not in known]
        ended = first and bool(told.faults)
        sought = _sought(bench, run, findings, say) if experiments and not ended else Outcome()
        findings += sought.findings
        open_questions += sought.notes
        report, sorted_ = _report(
            script,
            run,
            findings,
            refuted,
            reading,
            time.monotonic() - began,
            tuple(open_questions),
            patient,
            bench.interrupted,
            sought.cleared,
            accepted,
            good,
        )
    return Diagnosis(report, run, output, bundles, sorted_)


def _never() -> bool:
    return False


def _to_the_end(bench: Bench, run: Run, say: Say) -> ToTheEnd | None:
    if bench.interrupted or not cut_by_time(run):
        return None
    beside = (os.cpu_count() or 1) >= CORES_TO_SHARE
    share = bench.seconds_left * (1.0 if beside else ALONE_SHARE)
    if share * WATCHING_COSTS < run.seconds:
        return None  # it would not come further than the run that was watched
    say("running it to its end without watching: does it fail later?")
    return ToTheEnd(bench, run, share, beside=beside)


class Told:
    """Which causes have been told as proven."""

    def __init__(self, found: Found = lambda finding: None) -> None:
        self._found = found
        self.faults: set[str] = set()

    def any_yet(self) -> bool:
        return bool(self.faults)

    def proven(self, findings: Sequence[Finding]) -> None:
        """Causes only: what a better supported finding explains is not told."""
        for finding in map(faults.as_far_as_known, settle(list(findings))[0]):
            if finding.status == "proven" and finding.fault not in self.faults:
                self.faults.add(finding.fault)
                self._found(finding)


def _sought(bench: Bench, run: Run, findings: list[Finding], say: Say) -> Outcome:
    """Trials for an ill symptom that no finding accounts for."""
    seen = symptoms.explained(symptoms.read(run).symptoms, findings)
    ill = None if bench.interrupted else standing(seen)
    return Outcome() if ill is None else seek(bench, run, ill, say)


def _without_run(
    bench: Bench, script: str, argv: tuple[str, ...], seconds: float, error: ChildFailed
) -> Diagnosis:
    """Nothing was recorded: the script died, or was ended, or is no training at all."""
    ended = bench.interrupted or bench.out_of_time
    died = isinstance(error, DiedAtOnce) and not ended
    why = (
        "the diagnosis was interrupted before there was anything to see"
        if bench.interrupted
        else f"the time was up before there was anything to see; more: {MORE_TIME}"
        if ended
        else str(error).splitlines()[0].removesuffix(" It said:")
    )
    ending = Ending("exception", 1) if died else Ending("terminated")
    run = Run(script, argv, "", {}, ending, held_back=tuple(getattr(error, "held_back", ())))
    wanted = held_back(run)
    report = Report(
        "crashed" if died and not wanted else "inconclusive",
        script,
        0,
        round(seconds, 3),
        environment={"isolation": bench.isolation.mode},
        notes=(why, *wanted),
    )
    return Diagnosis(report, run, bench.log_tail)


def diagnose_run(
    run: Run, only: str = "*", accepted: Accepted | None = None, good: Run | None = None
) -> Diagnosis:
    """From a recording alone: the checks speak, experiments stay open."""
    reading = faults.read(run, only)
    notes = tuple(
        (
            f"{f.fault}: {f.experiment} would decide it; it needs the script (sawbones "
            f"diagnose {run.script})"
        )
        for f in reading.findings
        if f.experiment and f.status != "proven"
    )
    report, found = _report(
        run.script,
        run,
        list(reading.findings),
        [],
        reading,
        run.seconds,
        notes,
        None,
        accepted=accepted,
        good=good,
    )
    return Diagnosis(report, run, found=found)


def with_twin(bench: Bench, run: Run, say: Say) -> Run:
    """A short second run from the same start. Its comparison is a signal like any other."""
    if (not run.num_steps and not run.batches) or run.ending.kind == "hang":
        return run
    say("running it a second time with the same seed: does it repeat?")
    limit = min(run.num_steps, TWIN_STEPS) or None
    options = Options(deep_steps=(), deep_every=0, max_steps=limit, full_every=10, batch_samples=0)
    try:
        second = bench.execute(options, seconds=max(20.0, 2 * run.seconds))
    except SawbonesError:
        return run
    if bench.interrupted:
        return run
    return replace(run, twin_run=compare(run, second))


def with_source_change(bench: Bench, run: Run, say: Say) -> Run:
    """Short further runs with other values in rows that are only evaluated: a signal as well."""
    if not run.num_steps or run.ending.kind == "hang" or run.world_size > 1:
        return run
    if run.sources.rows:
        say("changing rows that are only evaluated: does the training notice?")
    told = change_at_source(bench, run)
    if not bench.interrupted and (filled := without_filled(bench, run)) is not None:
        told = replace(told, filled=filled)
    if bench.interrupted:
        return run
    return replace(run, source_change=told)


def with_strangers(bench: Bench, run: Run, say: Say) -> Run:
    """Whole further runs, where evaluated rows have relatives among those trained on."""
    known = run.sources.strangers
    if not known or run.ending.kind == "hang" or run.world_size > 1:
        return run
    columns = ", ".join(s.column for s in known)
    say(f"training without relatives of some evaluated rows (by {columns}): is the score kept?")
    return replace(run, strangers=keep_apart(bench, run))


def decide(
    bench: Bench,
    run: Run,
    findings: list[Finding],
    say: Say,
    told: Told | None = None,
    stop: Callable[[], bool] = _never,
) -> tuple[list[Finding], list[Finding], list[str]]:
    """Experiments on the findings that stand, best supported first; a consequence waits for its
    cause.
    """
    refuted: list[Finding] = []
    notes: list[str] = []
    decided: dict[str, Finding] = {}
    while True:
        stand, _ = settle(
            [decided.get(f.fault, f) for f in findings if f.fault not in {r.fault for r in refuted}]
        )
        todo = [f for f in stand if f.experiment and f.verdict is None and f.status != "proven"]
        # A cause is known: a mere suspicion beside it is not worth a run.
        if any(f.status == "proven" and acts(f) for f in stand):
            todo = [f for f in todo if f.status == "likely"]
        if not todo or stop():
            break
        if bench.interrupted or bench.seconds_left < 5:
            why = "interrupted" if bench.interrupted else "no time left"
            more = "" if bench.interrupted else f"; more: {MORE_TIME}"
            for finding in todo:
                notes.append(f"{finding.fault}: {why} before {finding.experiment}{more}")
                decided[finding.fault] = replace(
                    finding, verdict=Verdict(finding.experiment or "", "open", why)
                )
            continue
        together = todo[: _experiments_at_once()]
        for finding in together:
            say(f"is it {finding.fault}? {title_of(finding.experiment or '')}")
        for finding, verdict in zip(together, _verdicts(bench, together, run), strict=True):
            if verdict.outcome == "refuted":
                refuted.append(replace(finding, verdict=verdict))
            elif verdict.outcome == "confirmed":
                # one that leaves another cause open makes it likely
                status = "likely" if verdict.details.get("narrows") else "proven"
                decided[finding.fault] = replace(finding, verdict=verdict, status=status)
                if told is not None:
                    told.proven([decided[finding.fault]])
            else:
                notes.append(f"{finding.fault}: {verdict.result}")
                decided[finding.fault] = replace(finding, verdict=verdict)
    gone = {r.fault for r in refuted}
    return [decided.get(f.fault, f) for f in findings if f.fault not in gone], refuted, notes


def _experiments_at_once() -> int:
    """One per two cores, up to four. Findings that stand side by side explain nothing of each
    other, so their order is free.
    """
    cores = os.cpu_count() or 1
    return min(4, cores // 2) if cores >= CORES_TO_SHARE else 1


def _verdicts(bench: Bench, findings: list[Finding], run: Run) -> list[Verdict]:
    """In the order of the findings. Ctrl-C ends the children; their experiments then stay open."""
    if len(findings) == 1:
        return [_verdict(bench, findings[0], run)]
    with ThreadPoolExecutor(len(findings), "experiment") as pool:
        waiting = [pool.submit(_verdict, bench, finding, run) for finding in findings]
        return [future.result() for future in waiting]


def _verdict(bench: Bench, finding: Finding, run: Run) -> Verdict:
    began = time.monotonic()
    name = finding.experiment or ""
    bench.reruns.clear()
    repeated = partial(trial(name), bench, finding, run)
    try:
        verdict = repeated()
    except ChildFailed as error:
        verdict = Verdict(name, "open", f"could not be run: {str(error).splitlines()[0]}")
    details = {**verdict.details, **with_curves(run, bench.reruns)}
    verdict = against_placebo(bench, repeated, run, verdict)
    took = time.monotonic() - began
    return replace(verdict, seconds=took, details=details, title=title_of(name))


def _report(
    script: str,
    run: Run,
    findings: list[Finding],
    refuted: list[Finding],
    reading: faults.Reading,
    seconds: float,
    notes: tuple[str, ...],
    patient: Patient | None,
    interrupted: bool = False,
    cleared: tuple[Cleared, ...] = (),
    accepted: Accepted | None = None,
    good: Run | None = None,
) -> tuple[Report, Sorted]:
    compared = None if good is None else against_good(good, run)
    findings = list(map(faults.as_far_as_known, findings))
    stand = [with_differences(finding, compared) for finding in settle(findings)[0]]
    root = patient.working_folder if patient is not None else Path.cwd()
    # An interrupted diagnosis has not looked for everything.
    looked_for = () if interrupted else (*reading.silent, *(f.fault for f in refuted))
    found = sort(
        stand,
        (*reading.findings, *findings),
        replace(run, script=script),
        root,
        accepted,
        looked_for,
    )
    finished = tuple(
        replace(
            f,
            test=pin(f, replace(run, script=script), root).text,
        )
        for f in found.findings
    )
    looked = len(reading.silent) + len({f.fault for f in reading.findings})
    signs = symptoms.read(run)
    known = [item.finding for item in found.ignored]
    seen = symptoms.explained(signs.symptoms, [*finished, *known])
    judged = judge(
        run,
        finished,
        seen,
        looked=looked,
        blind=len(reading.could_not_look),
        interrupted=interrupted,
    )
    notes += (judged.why,) if judged.why else ()
    if judged.verdict == "unexplained" and patient is None:
        notes += (f"next: sawbones diagnose {script}, which runs it again under experiments",)
    if run.ending.kind == "exception":
        first = (run.ending.message or "").split("\n")[0][:200]
        notes += (f"the script crashed at {run.ending.site}: {run.ending.exception}: {first}",)
        explained = any(f.explanation is not None for f in finished)
        notes += () if explained else tuple(account(run))
    if run.died:
        notes += (f"the script was killed (exit status {run.died})",)
    notes += tuple(line for line in held_back(run) if line not in judged.why)
    notes += found.notes
    notes += ill_itself(good) if good is not None else ()
    if judged.verdict == "healthy" and (line := leaks_line(run, reading, finished)):
        notes += (line,)
    report = Report(
        judged.verdict,
        script,
        run.num_steps,
        round(seconds, 3),
        finished,
        tuple(refuted),
        reading.could_not_look,
        reading.silent,
        run.environment,
        notes,
        seen,
        cleared,
        could_not_see=signs.could_not_see,
        progress=learned(run),
        masked=dict(run.masked),
        ignored=found.ignored,
        against_good=compared,
    )
    return report, found
