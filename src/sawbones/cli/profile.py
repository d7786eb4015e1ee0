"""sawbones profile: where the time and the memory of a training step go, by the lines of the
script.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
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
    from sawbones.schema import Run
    from sawbones.schema.profile import Profile

DESCRIPTION = """Run a few steps of a training script and say where their time and memory go.

Throughput, the split into data, forward, backward, optimizer and the rest, the slowest operators and the owners of memory at the
peak, each with the line of the script. The script runs isolated (docs/how-to/isolation.md) and is ended after --steps.
torch.compile is off: compiled code has no lines."""

_WITH_VALUE = {"--steps", "--seconds", "--top", "--json"}
_PARTS = ("data", "forward", "backward", "optimizer", "other")
_MB = 1024.0 * 1024.0


def parser() -> argparse.ArgumentParser:
    p = Parser("sawbones profile", DESCRIPTION)
    p.add_argument(
        "--steps",
        type=values.whole(12),  # 3 warm up, 6 are timed and 2 traced
        default=30,
        metavar="N",
        help="end after N optimizer steps (default 30, at least 12)",
    )
    p.add_argument(
        "--seconds",
        type=values.above_zero,
        default=300.0,
        metavar="N",
        help="end after N seconds (default 300)",
    )
    p.add_argument(
        "--top",
        type=values.whole(1),
        default=10,
        metavar="N",
        help="operators and owners of memory to show (default 10)",
    )
    p.add_argument(
        "--json",
        type=values.file_to_write,
        metavar="FILE",
        help="write the profile as JSON (- for standard output)",
    )
    p.add_argument("script", metavar="SCRIPT", help="the training script")
    p.add_script_arguments()
    return p


def run(args: list[str]) -> None:
    own, theirs = split_script(args, _WITH_VALUE, parser())
    given = parser().parse_args([*own, *theirs[:1]])
    given.args = theirs[1:]
    existing_script(given.script)
    readable_source(given.script)
    from sawbones.schema.errors import SawbonesError

    try:
        profile = _profile(given)
    except SawbonesError as error:
        usage_error(str(error))
    if given.json and given.json != "-":
        Path(given.json).write_text(json.dumps(profile, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(profile, indent=2) if given.json == "-" else render(profile, given.top))
    raise SystemExit(0)


def _profile(given: argparse.Namespace) -> dict[str, Any]:
    from sawbones.observe.options import Options
    from sawbones.trials.bench import Bench, Patient

    options = Options(
        deep_steps=(), deep_every=0, max_steps=given.steps, batch_samples=0, extra={"profile": True}
    )
    print(
        f"sawbones: running {given.script} for at most {given.steps} steps",
        file=sys.stderr,
        flush=True,
    )
    with Bench(Patient(given.script, tuple(given.args), Path.cwd()), given.seconds) as bench:
        recorded = bench.execute(options)
        said = bench.log_tail
    measured = recorded.profile
    if measured is None or not measured.split:
        if said.strip():
            print(f"The end of what the script printed:\n{said[-1500:]}", file=sys.stderr)
        usage_error(
            f"{given.script} took {recorded.num_steps} optimizer steps; at least 4 are "
            "needed to see where their time goes"
        )
    return assemble(recorded, measured)


def assemble(recorded: Run, measured: Profile) -> dict[str, Any]:
    """The profile as plain values; all times per optimizer step."""
    from sawbones.store.codec import to_plain

    split = {part: _median([getattr(row, part) for row in measured.split]) for part in _PARTS}
    timed = recorded.steps["watch_ms"][3 : 3 + len(measured.split)]
    split["other"] = max(
        0.0, split["other"] - _median([float(ms) for ms in timed])
    )  # the recorder's own work
    step_ms = sum(split.values())
    samples, tokens = _amounts(recorded)
    free = measured.free_steps
    seconds = measured.free_seconds / free if free >= 3 else step_ms / 1e3
    return {
        "script": recorded.script,
        "device": recorded.device,
        "steps": recorded.num_steps,
        "seconds_per_step": seconds,
        "samples_per_second": samples / seconds if samples else None,
        "tokens_per_second": tokens / seconds if tokens else None,
        "split_ms": split,
        "operators": [{**asdict(row), "site": to_plain(row.site)} for row in measured.operators],
        "memory": {
            "device_peak_mb": measured.device_peak / _MB if measured.device_peak else None,
            "parameters_mb": measured.parameters / _MB,
            "gradients_mb": measured.gradients / _MB,
            "optimizer_mb": measured.optimizer / _MB,
            "step_peak_mb": measured.step_peak / _MB,
            "owners": [
                {"mb": row.num_bytes / _MB, "name": row.name, "site": to_plain(row.site)}
                for row in measured.owners
            ],
        },
    }


def _amounts(recorded: Run) -> tuple[float, float]:
    """Samples and tokens per optimizer step, from the inputs of the model in training."""
    by_step: dict[int, list[float]] = {}
    for event in recorded.of_kind("forward"):
        inputs = [x for x in event.data.get("inputs") or () if x["shape"]]
        if event.phase != "train" or not inputs:
            continue
        ids = next(
            (x["shape"] for x in inputs if "int" in x["dtype"] and len(x["shape"]) == 2), None
        )
        row = by_step.setdefault(event.step, [0.0, 0.0])
        row[0] += inputs[0]["shape"][0]
        row[1] += ids[0] * ids[1] if ids else 0.0
    rows = list(by_step.values())
    return (_median([r[0] for r in rows]), _median([r[1] for r in rows])) if rows else (0.0, 0.0)


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else 0.0


def render(profile: dict[str, Any], top: int) -> str:
    rates = [f"{1 / profile['seconds_per_step']:.2f} steps/s"]
    for name in ("samples", "tokens"):
        if profile[f"{name}_per_second"]:
            rates.append(f"{profile[f'{name}_per_second']:,.0f} {name}/s")
    total = sum(profile["split_ms"].values()) or 1.0
    lines = [
        f"{profile['script']} on {profile['device']}, {profile['steps']} steps: {', '.join(rates)}",
        "",
        "One step",
    ]
    for part, ms in profile["split_ms"].items():
        lines.append(
            f"  {part:<10} {ms:9.2f} ms  {ms / total:6.1%}  {'#' * round(40 * ms / total)}"
        )
    on_device = any(row["device_ms"] for row in profile["operators"])
    key = "device_ms" if on_device else "host_ms"
    lines += [
        "",
        f"Operators by their own time on the {'device' if on_device else 'host'}, per step",
    ]
    for row in profile["operators"][:top]:
        lines.append(
            f"  {row[key]:9.3f} ms  {row['calls']:6.1f} calls  {_short(row['name']):<34} "
            f"{_at(row['site'])}"
        )
    memory = profile["memory"]
    peak = (
        f"{memory['device_peak_mb']:.1f} MB on the device at the peak; "
        if memory["device_peak_mb"]
        else ""
    )
    lines += [
        "",
        (
            f"Memory: {peak}{memory['parameters_mb']:.1f} MB parameters, "
            f"{memory['gradients_mb']:.1f} MB gradients,"
        ),
    ]
    lines[-1] += (
        f" {memory['optimizer_mb']:.1f} MB optimizer, {memory['step_peak_mb']:.1f} MB of "
        "a step's own"
    )
    for row in memory["owners"][:top]:
        lines.append(f"  {row['mb']:9.2f} MB  {_short(row['name']):<34} {_at(row['site'])}")
    return "\n".join(lines)


def _short(name: str) -> str:
    plain = name.removeprefix("autograd::engine::evaluate_function: ").removeprefix("aten::")
    return plain if len(plain) <= 34 else plain[:31] + "..."


def _at(site: dict[str, Any] | None) -> str:
    return (
        f"{site['file']}:{site['line']}  {site['code'][:60]}" if site else "(no line of the script)"
    )
