"""sawbones try: change one thing about a training script, run it again, and say what that shows."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawbones.cli import values
from sawbones.cli.arguments import (
    Parser,
    existing_script,
    readable_source,
    split_script,
    usage_error,
)

if TYPE_CHECKING:
    from sawbones.schema import Run, Verdict
    from sawbones.trials.bench import Bench
    from sawbones.trials.menu import Asked

DESCRIPTION = """Change one thing about a training script, run it again from the same seed, and
compare: `sawbones try lr=0.1 train.py`, several as `sawbones try overfit-one-batch,clip=1 train.py`.

The script is not changed, and nothing of yours is overwritten. What there is to try:
sawbones try --list.
Exit status: 0 nothing came of it, 1 a trial confirmed what it looks for, 2 usage error, 3 the
script crashed, 4 no trial could be decided, or not what --expect and --hash ask, or
interrupted."""

_WITH_VALUE = {"--steps", "--seconds", "--json", "--nproc-per-node", "--expect"}
LEAST_STEPS = 4  # fewer compare nothing
_BARS = "▁▂▃▄▅▆▇█"
_CURVE_WIDTH = 40


def parser() -> argparse.ArgumentParser:
    p = Parser("sawbones try", DESCRIPTION)
    p.add_argument("--list", action="store_true", help="all trials, one line each")
    p.add_argument(
        "--steps",
        type=values.whole(LEAST_STEPS),
        metavar="N",
        help="compare at most N optimizer steps (default: all)",
    )
    p.add_argument(
        "--seconds",
        type=values.above_zero,
        default=600.0,
        metavar="N",
        help="budget in all (default 600)",
    )
    p.add_argument(
        "--nproc-per-node",
        type=values.whole(1, values.MOST_RANKS),
        default=1,
        metavar="N",
        help="run the script on N ranks",
    )
    p.add_argument(
        "--json",
        type=values.file_to_write,
        metavar="FILE",
        help="write the results as JSON (- for stdout)",
    )
    p.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="TEXT",
        help='with short: what must hold at its end, e.g. "loss < 2.0"; may be given again',
    )
    p.add_argument(
        "--hash",
        action="store_true",
        help="with short: run it a second time; the checkpoints must be the same bit for bit",
    )
    p.add_argument("trials", metavar="TRIALS", nargs="?", help="names, separated by commas")
    p.add_argument("script", metavar="SCRIPT", nargs="?", help="the training script")
    p.add_script_arguments()
    return p


def run(args: list[str]) -> None:
    if "--list" in args:
        print(listing())
        raise SystemExit(0)
    own, named, theirs = _split(args)
    if named is None or not theirs:
        parser().parse_args(own)
        usage_error(
            "name a trial and a script: sawbones try overfit-one-batch train.py. "
            "All trials: sawbones try --list"
        )
    given = parser().parse_args([*own, named, theirs[0]])
    given.args = theirs[1:]
    existing_script(given.script)
    readable_source(given.script)
    from sawbones.schema.errors import SawbonesError
    from sawbones.trials.menu import parse
    from sawbones.trials.smoke import expectation

    try:
        asked = parse(given.trials)
        given.expect = [expectation(text) for text in given.expect]
        if (given.expect or given.hash) and [one.item.name for one in asked] != ["short"]:
            usage_error(
                "--expect and --hash go with short alone: sawbones try short train.py --hash"
            )
        raise SystemExit(_try(given, asked))
    except SawbonesError as error:
        usage_error(str(error))


def listing() -> str:
    from sawbones.trials.menu import ITEMS

    shown = [f"{i.name}={i.value:g}" if i.value is not None else i.name for i in ITEMS]
    width = max(map(len, shown))
    return "\n".join(f"{n:<{width}}  {i.line}" for n, i in zip(shown, ITEMS, strict=True))


def _split(args: list[str]) -> tuple[list[str], str | None, list[str]]:
    """Own flags, then the names of the trials, then the script and what belongs to it."""
    own: list[str] = []
    rest = list(args)
    while rest and rest[0].startswith("-"):
        flag = rest.pop(0)
        own.append(flag)
        if flag in _WITH_VALUE and rest:
            own.append(rest.pop(0))
    if not rest:
        return own, None, []
    more, theirs = split_script(rest[1:], _WITH_VALUE, parser())
    return own + more, rest[0], theirs


def _try(given: argparse.Namespace, asked: tuple[Asked, ...]) -> int:
    from sawbones.observe.options import diagnosing
    from sawbones.schema import Ending, Run
    from sawbones.trials.bench import Bench, ChildFailed, Patient

    patient = Patient(given.script, tuple(given.args), Path.cwd(), given.nproc_per_node)
    rows: list[dict[str, Any]] = []
    held: list[dict[str, Any]] = []
    with Bench(patient, given.seconds) as bench:
        if any(one.item.needs_baseline for one in asked):
            _say(f"{given.script} as it is, then {len(asked)} time{'s' * (len(asked) > 1)} changed")
            baseline = bench.execute(diagnosing(max_steps=given.steps, journal=False))
        else:
            baseline = Run(given.script, tuple(given.args), "", {}, Ending("finished"))
        bench.baseline = baseline
        if baseline.ending.kind == "exception" and not baseline.num_steps:
            print(bench.log_tail, file=sys.stderr)
            _say(f"{given.script} crashes before its first optimizer step: nothing to compare")
            return 3
        for one in asked:
            began = time.monotonic()
            _say(f"{one.shown}: {one.item.line} ({bench.seconds_left:.0f} s left)")
            try:
                verdict = one.run(bench, baseline)
            except ChildFailed as error:
                verdict = _undecided(one, str(error).splitlines()[0])
            rows.append(_row(one, verdict, time.monotonic() - began))
            if given.json != "-":
                print(_told(one, verdict, baseline, bench.latest))
        if given.expect or given.hash:
            held = _held_to(given, bench)
    rows += held
    if given.json:
        _write(given, baseline, rows)
    outcomes = {row["outcome"] for row in rows}
    # A job that asks for a number or a hash must not pass because there was none.
    unknown = outcomes == {"open"} or any(row["outcome"] == "open" for row in held)
    return 1 if "confirmed" in outcomes else 4 if unknown else 0


def _held_to(given: argparse.Namespace, bench: Bench) -> list[dict[str, Any]]:
    """What --expect and --hash ask of the short run, the first of this bench."""
    from sawbones.trials.bench import ChildFailed
    from sawbones.trials.smoke import checkpoints, hash_of, hold_to, last_values, same_twice

    if not bench.reruns:
        return []
    remedies, seen = bench.reruns[0]
    if seen.ending.kind == "exception" or not seen.num_steps:
        return []  # told already
    saved = checkpoints(seen)
    verdicts = [hold_to(one, last_values(seen), hash_of(saved)) for one in given.expect]
    if given.hash:
        _say("short once more: are the checkpoints the same?")
        try:
            verdicts.append(same_twice(bench, saved, remedies))
        except ChildFailed as error:
            verdicts.append(_open("hash", str(error).splitlines()[0]))
    words = {"refuted": "holds", "confirmed": "DOES NOT HOLD", "open": "undecided"}
    rows = []
    for verdict in verdicts:
        if given.json != "-":
            print(f"\n{verdict.experiment}: {words[verdict.outcome]}\n  {verdict.result}")
        rows.append(
            {
                "trial": verdict.experiment,
                "outcome": verdict.outcome,
                "result": verdict.result,
                "value": verdict.with_remedy,
            }
        )
    return rows


def _open(name: str, why: str) -> Verdict:
    from sawbones.schema import Verdict

    return Verdict(name, "open", why)


def _undecided(one: Asked, why: str) -> Verdict:
    return _open(one.shown, why)


def _row(one: Asked, verdict: Verdict, seconds: float) -> dict[str, Any]:
    return {
        "trial": one.shown,
        "outcome": verdict.outcome,
        "result": verdict.result,
        "meaning": one.meaning(verdict),
        "layer": one.item.layer,
        "baseline": verdict.baseline,
        "with_change": verdict.with_remedy,
        "seconds": round(seconds, 2),
    }


def _told(one: Asked, verdict: Verdict, baseline: Run, changed: Run | None) -> str:
    undecided = " (undecided)" if verdict.outcome == "open" else ""
    lines = [f"\n{one.shown}{undecided}", f"  {verdict.result}"]
    if changed is not None and len(baseline.losses) > 1 and len(changed.losses) > 1:
        steps = min(len(baseline.losses), len(changed.losses))
        before, after = (list(map(float, r.losses[:steps])) for r in (baseline, changed))
        known = [v for v in (*before, *after) if v - v == 0.0]
        if known:
            ends = (min(known), max(known))
            lines.append(f"  as it is  {curve(before, ends)}")
            lines.append(f"  changed   {curve(after, ends)}  {steps} steps")
    lines.append(f"  {one.meaning(verdict)}")
    return "\n".join(lines)


def curve(values: list[float], ends: tuple[float, float]) -> str:
    """A line of bars, each the mean of its stretch; x where a loss is not finite."""
    low, high = ends
    width = min(_CURVE_WIDTH, len(values))
    parts = [
        values[i * len(values) // width : (i + 1) * len(values) // width] for i in range(width)
    ]
    shown = ""
    for part in parts:
        mean = sum(part) / len(part)
        if mean - mean != 0.0:
            shown += "x"
            continue
        level = (mean - low) / (high - low) if high > low else 0.0
        shown += _BARS[min(len(_BARS) - 1, int(level * len(_BARS)))]
    return shown


def _write(given: argparse.Namespace, baseline: Run, rows: list[dict[str, Any]]) -> None:
    report = {"script": given.script, "steps": baseline.num_steps, "trials": rows}
    text = json.dumps(report, indent=2)
    if given.json == "-":
        print(text)
    else:
        Path(given.json).write_text(text + "\n", encoding="utf-8")
        _say(f"wrote {given.json}")


def _say(text: str) -> None:
    print(f"sawbones: {text}", file=sys.stderr, flush=True)
