"""A captured step beside its replay: what is the same, and what differs first."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field
from typing import Any

from sawbones.capture.bundle import Bundle
from sawbones.masking import mask


@dataclass(frozen=True)
class Changes:
    """What is deliberately different from the captured run."""

    device: str | None = None
    dtype: str | None = None
    approximate: bool = False

    @property
    def exact(self) -> bool:
        return self.device is None and self.dtype is None


EXACTLY = Changes()


@dataclass
class Replay:
    same: bool
    way: str  # of replay.WAYS
    outcome: dict[str, Any]
    differences: list[str] = field(default_factory=list)
    operator: str | None = None  # the first that differs, where the bits are not the same
    reasons: list[str] = field(default_factory=list)
    tried: list[str] = field(
        default_factory=list
    )  # ways that did not give the captured failure, and why
    seconds: float = 0.0

    @property
    def text(self) -> str:
        return describe(self.outcome)


def describe(outcome: dict[str, Any]) -> str:
    kind = outcome.get("kind")
    if "text" in outcome:
        return str(outcome["text"])
    if kind == "exception":
        site = outcome.get("site") or {}
        first = (str(outcome.get("message") or "").splitlines() or [""])[0][:200]
        return f"{outcome.get('exception')}: {first}" + (
            f"  ({site.get('file')}:{site.get('line')})" if site else ""
        )
    if kind == "not reached":
        return "the captured step was not reached"
    if kind == "hang":
        return "the ranks wait for each other"
    if kind == "none" and "loss" not in outcome:
        return "the step ended without the failure"
    return f"loss {outcome.get('loss')}" + {"nonfinite gradient": ", a gradient is not finite"}.get(
        str(kind), ""
    )


def plain_message(text: str | None) -> str:
    """Addresses and temporary paths change from process to process, and secrets are not in a
    bundle.
    """
    return re.sub(r"0x[0-9a-f]+|/[\w./-]*sawbones-[\w./-]+", "_", mask(text or "")).strip()


def compared(bundle: Bundle, outcome: dict[str, Any], way: str, changes: Changes) -> Replay:
    failure, differences = bundle.failure, []
    if failure.kind == "exception":
        if outcome.get("kind") != "exception" or outcome.get("exception") != failure.exception:
            differences.append(f"{describe(outcome)}, the bundle has {failure.text}")
        elif (
            plain_message(outcome.get("message")) != plain_message(failure.message)
            and not changes.approximate
        ):
            differences.append(
                f"the message is {describe(outcome)!r}, the bundle has {failure.text!r}"
            )
        elif failure.site is not None and not _same_line(outcome.get("site"), failure.site):
            differences.append(f"raised at {outcome.get('site')}, the bundle has {failure.site}")
        return Replay(not differences, way, outcome, differences)
    if bundle.state.get("point") == "hang":
        same = outcome.get("kind") == "hang"
        return Replay(
            same,
            way,
            outcome,
            [] if same else [f"{describe(outcome)}, the bundle has {failure.text}"],
        )
    if outcome.get("kind") in ("exception", "not reached", "hang") or "loss" not in outcome:
        return Replay(False, way, outcome, [f"{describe(outcome)}, the bundle has {failure.text}"])
    if changes.approximate or not changes.exact:
        same = outcome["kind"] == failure.kind or failure.kind in ("by hand", "rank mismatch")
        if failure.kind == "loss spike" and failure.loss is not None:
            same = same or math.isclose(float(outcome["loss"]), failure.loss, rel_tol=1e-2)
        return Replay(
            same,
            way,
            outcome,
            [] if same else [f"{describe(outcome)}, the bundle has {failure.text}"],
        )
    return Replay(not (found := bit_differences(bundle, outcome)), way, outcome, found)


def _same_line(found: Any, site: Any) -> bool:
    return (
        bool(found)
        and os.path.basename(found["file"]) == os.path.basename(site.file)
        and found["line"] == site.line
    )


def bit_differences(bundle: Bundle, outcome: dict[str, Any]) -> list[str]:
    prints = bundle.unpacked("prints") or {}
    differences = []
    if "loss" in prints:
        if prints["loss"] != outcome.get("loss_print"):
            recorded = bundle.failure.loss
            shown = (
                f"the bundle has {recorded}"
                if recorded is not None
                else "the bundle has other bits"
            )
            differences.append(f"loss {outcome['loss']}, {shown}")
    elif bundle.failure.loss is not None and str(bundle.failure.loss) != outcome["loss"]:
        differences.append(f"loss {outcome['loss']}, the bundle has {bundle.failure.loss}")
    recorded_gradients: dict[str, str] = prints.get("gradients") or {}
    other = other_gradients(recorded_gradients, outcome)
    if other:
        differences.append(
            f"gradient of {other[0]} ({len(other)} of {len(recorded_gradients)} gradients differ)"
        )
    return differences


def other_gradients(recorded: dict[str, str], outcome: dict[str, Any]) -> list[str]:
    """Parameters whose gradients differ, in the order of the backward pass: the last that is used
    comes first.
    """
    found: dict[str, str] = outcome.get("gradients") or {}
    used: dict[str, int] = outcome.get("users") or {}
    other = [name for name, value in reversed(recorded.items()) if found.get(name) != value]
    return sorted(other, key=lambda name: -used.get(name, -1))
