"""assert_mended: a captured failure, held against the code as it is now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sawbones.capture.bundle import Bundle, read_bundle
from sawbones.capture.comparing import describe
from sawbones.capture.errors import CaptureError
from sawbones.capture.replay import Theatre, ways
from sawbones.capture.trust import is_trusted
from sawbones.testing.wording import broken
from sawbones.trials.bench import ChildFailed


def assert_mended(
    bundle: str | Path,
    root: str | Path | None = None,
    seconds: float = 600.0,
    sha256: str | None = None,
) -> None:
    """The captured step no longer fails with the source in `root`, the current folder by default.

    `sha256` says which file is meant: it is the consent to run the script with what the bundle
    holds, also on a machine that did not make it. Without it, only a bundle that this user's
    Sawbones made is run.

    First with the recorded weights, batch and random streams. Where it fails still, or the mended
    code has no place for them, the script runs from its start up to that step: the mistake may be
    mended in the data, which a recorded batch does not show.
    """
    given = read_bundle(bundle, sha256)
    if sha256 is None and not is_trusted(given):
        raise CaptureError(
            f"{bundle} was not made by your own Sawbones. Look at it, then name it: "
            f"assert_mended(..., sha256={given.sha256!r})"
        )
    captured = _with_local_source(given, Path(root) if root is not None else Path.cwd())
    outcome: dict[str, Any] = {}
    with Theatre(captured, seconds) as theatre:
        theatre.sources = {}
        for way in sorted(ways(captured)):  # jump before rerun
            try:
                outcome = theatre.perform(way)
            except ChildFailed as error:
                outcome = {
                    "kind": "exception",
                    "exception": type(error).__name__,
                    "message": str(error).splitlines()[0],
                }
                continue
            if _is_well(captured, outcome):
                return
    raise broken(
        f"step {captured.step} ends with {describe(outcome)}",
        "a step without it",
        captured.step,
        captured.failure.site,
    )


def _is_well(bundle: Bundle, outcome: dict[str, Any]) -> bool:
    if outcome.get("kind") != "none":
        return False
    spike = (
        bundle.failure.kind == "loss spike"
        and bundle.failure.limit is not None
        and "loss" in outcome
    )
    return not spike or float(outcome["loss"]) <= float(bundle.failure.limit or 0.0)


def _with_local_source(bundle: Bundle, root: Path) -> Bundle:
    place = {
        "working_folder": str(root.resolve()),
        "script_path": str((root / bundle.script).resolve()),
    }
    return replace(bundle, environment={**bundle.environment, **place})
