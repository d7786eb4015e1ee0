"""Replay: the captured step once more, in a new process, and what is the same and what is not."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sawbones.capture.bundle import Bundle
from sawbones.capture.comparing import EXACTLY, Changes, Replay, compared, describe, plain_message
from sawbones.capture.errors import CaptureError
from sawbones.capture.reasons import NOT_CHANCE, first_operator, likely_reasons
from sawbones.capture.variables import Variables
from sawbones.isolation.scratch import Room
from sawbones.masking import MASK, mask_arguments, mask_bytes
from sawbones.observe.options import Options
from sawbones.trials.bench import Bench, ChildFailed, Patient
from sawbones.trials.child import Remedy

MOST_FILES = 20
STAGE = "sawbones.capture.stage"
SECONDS = 600.0
WAYS = {
    "jump": "rebuilt from the source, with the recorded weights, batches and random streams",
    "rerun": "the script ran again from its start",
    "operator": "the operator at fault alone, with its recorded inputs",
}

Say = Callable[[str], None]


class Theatre:
    """One bench with a copy of the working folder in which the bundle's sources lie over the local
    ones.
    """

    def __init__(self, bundle: Bundle, seconds: float = SECONDS) -> None:
        self.bundle = bundle
        environment = bundle.environment
        recorded = Path(str(environment.get("working_folder", "")))
        self.folder = recorded if recorded.is_dir() else Path.cwd()
        script = str(environment["script"])
        elsewhere = Path(str(environment.get("script_path", "")))
        sources = bundle.sources()
        inside = recorded.is_dir() and elsewhere.is_relative_to(recorded)
        if not inside and elsewhere.is_file() and _is_same(elsewhere, sources.get(script)):
            script = str(
                elsewhere
            )  # a script that lies outside of its working folder finds its neighbours there
        elif script not in sources and not (self.folder / script).is_file():
            raise CaptureError(
                f"{bundle.path} holds no source and {script} is not in {self.folder}. Go "
                "to the folder of the script, "
                "or use a bundle written without --no-source"
            )
        if any(MASK in argument for argument in bundle.argv):
            raise CaptureError(
                "an argument of the captured run was masked as a secret "
                f"({' '.join(bundle.argv)}): it cannot be run again"
            )
        num_ranks = bundle.world_size
        launched = num_ranks > 1 or "RANK" in environment.get("variables", {})
        self.bench = Bench(Patient(script, bundle.argv, self.folder, num_ranks, launched), seconds)
        self.sources = sources

    def __enter__(self) -> Theatre:
        self.bench.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.bench.__exit__(*error)

    def prepared(self) -> Room:
        """A fresh room to work in. What the child leaves in its box can be read while the bench is
        open.
        """
        room = self.bench.room()
        inside = self.folder.resolve()
        for name, text in self.sources.items():
            own = self.folder / name
            if not own.parent.resolve().is_relative_to(inside):
                raise CaptureError(
                    f"{self.bundle.path}: {name} would be written outside of the copy, through a "
                    f"link in {self.folder}"
                )
            if not _is_same(own, text):  # else with the secrets that were masked in the bundle
                room.put(name, text)
        return room

    def perform(
        self, way: str, changes: Changes = EXACTLY, room: Room | None = None, **settings: Any
    ) -> dict[str, Any]:
        """Runs one child and returns its outcome."""
        room = room or self.prepared()
        result = room.box / "outcome.json"
        params = {
            "bundle": str(self.bundle.path.absolute()),
            "sha256": self.bundle.sha256,
            "way": way,
            "result": str(result),
            "exact": changes.exact,
            **settings,
        }
        remedies = [Remedy(STAGE, params)]
        if changes.dtype is not None:
            remedies.append(Remedy(changes.dtype))
        if changes.device == "cpu" and self.bundle.environment.get("cuda"):
            remedies.append(Remedy("sawbones.capture.on_cpu"))
        options = Options(deep_steps=(), deep_every=0, batch_samples=0, full_every=1000)
        patient = self.bench.patient
        if way == "jump" and patient.num_ranks > 1:  # other ranks' batches are not in this bundle
            patient = Patient(patient.script, patient.argv, patient.working_folder, 1, True)
        with Variables(self.bundle, changes):
            self.bench.execute(options, remedies, room=room, patient=patient)
        try:
            outcome: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ChildFailed(
                f"the rebuilt script gave no outcome. It said:\n{self.bench.log_tail[-1500:]}"
            ) from error
        outcome["folder"] = str(result.parent)
        return outcome


def _is_same(path: Path, text: bytes | None) -> bool:
    """The local file is the one that was captured, in which secrets were masked."""
    try:
        return text is None or (path.is_file() and mask_bytes(path.read_bytes()) == text)
    except OSError:
        return False


def replay(
    bundle: Bundle,
    changes: Changes = EXACTLY,
    deep: bool = False,
    seconds: float = SECONDS,
    say: Say = lambda text: None,
) -> Replay:
    """Re-executes the captured step the cheapest way that gives the captured failure."""
    began = time.monotonic()
    best: Replay | None = None
    tried: list[str] = []
    try:
        with Theatre(bundle, seconds) as theatre:
            for way in ways(bundle):
                say(f"{bundle.path.name}: {WAYS[way]}")
                try:
                    outcome = theatre.perform(way, changes, deep=deep)
                except ChildFailed as error:
                    tried.append(f"{way}: {str(error).splitlines()[0]}")
                    continue
                found = compared(bundle, outcome, way, changes)
                if best is None or found.same or _nearer(bundle, found, best):
                    best = found
                if found.same:
                    break
                tried.append(
                    f"{way}: {found.text}"
                    + (f" ({found.differences[0]})" if found.differences else "")
                )
            if best is not None and not best.same and changes.exact and best.outcome.get("reached"):
                say(f"{bundle.path.name}: once more, with every operator traced")
                _explain(bundle, theatre, best)
    except CaptureError as error:
        tried.append(str(error))
    if (best is None or not best.outcome.get("reached")) and bundle.state.get("call") is not None:
        say(f"{bundle.path.name}: {WAYS['operator']}")
        best = replay_operator(bundle, changes)
    if best is None:
        raise CaptureError(f"{bundle.path} cannot be replayed: " + "; ".join(tried))
    best.tried = tried
    best.seconds = time.monotonic() - began
    if not best.same:
        best.reasons += likely_reasons(
            bundle, changes, best.outcome, chance=NOT_CHANCE not in best.reasons
        )
    return best


def _explain(bundle: Bundle, theatre: Theatre, found: Replay) -> None:
    """A second replay tells chance from change, and its trace tells where the first operator that
    differs stands.
    """
    try:
        traced = theatre.perform(found.way, deep=True, places=True)
    except ChildFailed as error:
        found.reasons.append(f"a second replay failed: {str(error).splitlines()[0]}")
        return
    found.operator, chance = first_operator(bundle, found.outcome, traced)
    found.reasons.append(chance)
    found.outcome.setdefault("operators", traced.get("operators") or {})


def ways(bundle: Bundle) -> list[str]:
    """With several ranks a step is only complete with all of them, and only the whole script has
    them.
    """
    if bundle.state.get("point") == "hang":  # no rank waits for itself
        return ["rerun"]
    has_state = bool(bundle.state.get("arrivals")) and bundle.state.get("snapshot") is not None
    jump = ["jump"] if has_state else []
    return ["rerun", *jump] if bundle.world_size > 1 else [*jump, "rerun"]


def _nearer(bundle: Bundle, one: Replay, other: Replay) -> bool:
    return (
        one.outcome.get("kind") == bundle.failure.kind
        and other.outcome.get("kind") != bundle.failure.kind
    )


# the operator alone


def replay_operator(bundle: Bundle, changes: Changes = EXACTLY) -> Replay:
    from sawbones.capture.operators import run_call

    call = bundle.unpacked("call")
    if bundle.failure.kind != "exception":
        return _replay_values(bundle, call, changes)
    try:
        run_call(call)
    except CaptureError:
        raise
    except Exception as error:
        outcome = {
            "kind": "exception",
            "exception": type(error).__name__,
            "message": str(error),
            "operator": call["function"],
        }
        same = outcome["exception"] == bundle.failure.exception and plain_message(
            str(error)
        ) == plain_message(bundle.failure.message)
        return Replay(
            same,
            "operator",
            outcome,
            [] if same else [f"{describe(outcome)}, the bundle has {bundle.failure.text}"],
        )
    return Replay(
        False,
        "operator",
        {"kind": "none", "operator": call["function"]},
        [f"{call['function']} gave no error"],
    )


def _replay_values(bundle: Bundle, call: Any, changes: Changes) -> Replay:
    from sawbones.capture.nonfinite import outcome_of

    try:
        found = outcome_of(call)
        name, prints = str(call["function"]), call["prints"]
    except CaptureError:
        raise
    except Exception as error:
        raise CaptureError(
            f"{bundle.path}: its operator cannot be run: {type(error).__name__}: {str(error)[:200]}"
        ) from error
    kind = bundle.failure.kind if found["bad"] else "none"
    where = f" ({call['site']})" if call.get("site") else ""
    what = "gradients" if call.get("gives") == "gradient" else "values"
    text = f"{name}{where} gives {found['bad']} of {found['of']} {what} that are not finite"
    outcome = {"kind": kind, "operator": name, "text": text}
    differences = [] if found["bad"] else [f"{text}, the bundle has {bundle.failure.text}"]
    if found["bad"] and found["prints"] != prints and not changes.approximate:
        differences.append(f"{name} gives other bits than it did")
    return Replay(not differences, "operator", outcome, differences)


# what it would run


def what_runs(bundle: Bundle) -> list[str]:
    """Lines for somebody who has to decide whether this bundle may run its code."""
    sources = bundle.sources()
    environment = bundle.environment
    origin = "in the bundle" if bundle.script in sources else str(environment.get("script_path"))
    lines = [
        f"script     {bundle.script} ({origin})",
        f"arguments  {' '.join(mask_arguments(bundle.argv)) or 'none'}",
        f"folder     a copy of {environment.get('working_folder') or 'the current folder'}",
    ]
    files = [f"{name} ({len(text):,} bytes)" for name, text in sources.items()]
    more = [f"and {len(files) - MOST_FILES} more"] if len(files) > MOST_FILES else []
    if files:
        lines.append(f"files      {', '.join([*files[:MOST_FILES], *more])}")
    variables = Variables(bundle, EXACTLY).new
    if variables:
        named = ", ".join(f"{name}={value[:80]}" for name, value in variables.items())
        lines.append(f"variables  {named}")
    lines.append(f"sha256     {bundle.sha256}")
    return lines
