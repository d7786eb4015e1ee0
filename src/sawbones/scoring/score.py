"""The scored run: every case diagnosed in its own empty folder, results as plain rows."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from sawbones.diagnosis import diagnose_run, diagnose_script
from sawbones.schema import Report, Run
from sawbones.schema.errors import SawbonesError
from sawbones.scoring.cases import Case
from sawbones.store import read_run


@dataclass(frozen=True)
class Result:
    case: str
    fault: str | None
    found: tuple[str, ...]  # likely or proven, in the report's order
    suspected: tuple[str, ...]
    located: bool
    verdict: str
    seconds: float
    script_seconds: float
    error: str = ""

    @property
    def top1(self) -> bool:
        return bool(self.found) and self.found[0] == self.fault

    @property
    def top3(self) -> bool:
        return self.fault in self.found[:3]

    @property
    def false_alarm(self) -> bool:
        return self.fault is None and bool(self.found)


def score_case(
    case: Case, experiments: bool = True, seconds: float = 300.0, cache: Path | None = None
) -> Result:
    """One diagnosis. With a cache and without experiments, a recording made before is read instead
    of running the script.
    """
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="sawbones-case-"))
    try:
        script = folder / case.script.name
        shutil.copy(case.script, script)
        recorded = cache / case.name.replace("/", "__") if cache is not None else None
        if recorded is not None and not experiments and (recorded / "run.db").exists():
            diagnosis = diagnose_run(read_run(recorded))
        else:
            if recorded is not None:
                shutil.rmtree(recorded, ignore_errors=True)
            diagnosis = diagnose_script(
                script.name,
                case.argv,
                working_folder=folder,
                seconds=seconds,
                experiments=experiments,
                num_ranks=case.num_ranks,
                keep_run=recorded,
            )
        return _result(case, diagnosis.report, diagnosis.run, time.monotonic() - began)
    except SawbonesError as error:
        return Result(
            case.name,
            case.fault,
            (),
            (),
            False,
            "error",
            time.monotonic() - began,
            0.0,
            str(error)[:300],
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _result(case: Case, report: Report, run: Run, seconds: float) -> Result:
    sure = [f for f in report.findings if f.status != "suspected"]
    named = next((f for f in sure if f.fault == case.fault), None)
    located = named is not None and any(case.located(s.file, s.line) for s in named.where[:2])
    unsure = tuple(f.fault for f in report.findings if f.status == "suspected")
    return Result(
        case.name,
        case.fault,
        tuple(f.fault for f in sure),
        unsure,
        located,
        report.verdict,
        seconds,
        run.seconds,
    )


def score(
    cases: Sequence[Case],
    experiments: bool = True,
    cache: Path | None = None,
    done: Callable[[Result], None] = lambda r: None,
    jobs: int = 1,
) -> list[Result]:
    """All cases, `jobs` of them at a time, in their own order; `done` hears of each as it ends."""
    judge = partial(score_case, experiments=experiments, cache=cache)
    if jobs == 1:
        results = []
        for case in cases:
            results.append(judge(case))
            done(results[-1])
        return results
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_as_worker) as pool:
        futures = [pool.submit(_in_worker, judge, case) for case in cases]
        try:
            for future in as_completed(futures):
                done(future.result())
        except BaseException:
            for process in list(pool._processes.values()):
                process.terminate()
            pool.shutdown(cancel_futures=True)
            raise
    return [future.result() for future in futures]


def _as_worker() -> None:
    """Ctrl-C is the parent's; it ends the workers, which then clean up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def _in_worker(judge: Callable[[Case], Result], case: Case) -> Result:
    try:
        return judge(case)
    except SystemExit:  # the pool would take it for the answer and go on with the next case
        atexit._run_exitfuncs()
        os._exit(1)


def totals(results: Sequence[Result]) -> dict[str, float]:
    sick = [r for r in results if r.fault is not None]
    well = [r for r in results if r.fault is None]
    ratios = [r.seconds / r.script_seconds for r in results if r.script_seconds > 0]

    def share(hits: int, of: int) -> float:
        return hits / of if of else 1.0

    return {
        "cases": float(len(results)),
        "top1": share(sum(r.top1 for r in sick), len(sick)),
        "top3": share(sum(r.top3 for r in sick), len(sick)),
        "located": share(sum(r.located for r in sick), len(sick)),
        "false_alarms": float(sum(r.false_alarm for r in well)),
        "healthy_cases": float(len(well)),
        "time_ratio_median": median(ratios) if ratios else 0.0,
    }


def markdown(results: Sequence[Result], title: str, header: Sequence[str] = ()) -> str:
    t = totals(results)
    lines = [f"# {title}", "", *header, ""]
    lines += [
        f"- cases: {int(t['cases'])} ({int(t['healthy_cases'])} healthy)",
        (
            f"- top-1: {t['top1']:.1%}, top-3: {t['top3']:.1%}, located within 5 lines: "
            f"{t['located']:.1%}"
        ),
        f"- false alarms on healthy scripts: {int(t['false_alarms'])}",
        (
            "- median time of diagnose over the script's own observed time: "
            f"{t['time_ratio_median']:.2f}"
        ),
        "",
        "| case | truth | found | suspected | located | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for r in results:
        mark = "" if (r.top1 if r.fault else not r.found) else " **(wrong)**"
        found = ", ".join(r.found) or r.error or "-"
        row = (
            r.case,
            r.fault or "healthy",
            found + mark,
            ", ".join(r.suspected) or "-",
            "yes" if r.located else "-",
            f"{r.seconds:.1f}",
        )
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"
