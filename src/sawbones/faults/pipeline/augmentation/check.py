"""Augmentation that destroys what the label is about

## What it sees
Whether inputs are changed at random: two reads of one sample of the data set differ, or what
reaches the model has little to do with what the loader gave (their correlation is under a half).
Fires when that is so, the loss has not come down by 15 %, and the inputs that were trained on say
nothing about their labels. Also when the loss stays above 30 % of that of a constant answer and
samples tell their labels far better with all random choices held alike (above 15 %, where they tell
all labels then, and the model mixes up two classes and tells another); and when one of a few
numbers that make up the label is told by the inputs only then. And when pictures change from draw
to draw, their masks never do, and a fifth or more of the masks would fit clearly better mirrored or
turned: the picture was flipped alone. Needs 20 steps.

## Why it matters
The label no longer belongs to the picture: there is nothing to learn, or only what survives the
change.

## Looks like
Loss stays at chance while the same model learns at once without augmentation.

## Example
    image = image.flip(-1) if random.random() < 0.5 else image  # label: points left or right

## Use instead
    image = image.flip(-2) if random.random() < 0.5 else image

## Confirm it
The script runs again with every random choice of the data set, or of the loop before the model,
held at one and the same value: a change that is the same for all samples destroys nothing.
Confirmed when the loss then falls clearly further.

## False alarms
Strong but honest augmentation leaves a loss that falls, and then the check is silent. Noise as a
task (denoising, diffusion, contrastive views) has no class label, and the noisy input still tells
every number of the clean one. Inputs that are only scaled or shifted keep their correlation.
Pictures whose colours alone change lie under their masks in every draw. Points and boxes that are
mirrored with their picture change from draw to draw.

## References
Horizontal flips of digits, text and arrows; pictures mirrored without their key points or masks;
shuffled frames; crops that miss the object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.schema import DeepStep, Evidence, Finding, Fix, Run, Site
from sawbones.stats.data_lines import (
    data_function,
    feeding_sites,
    lines_in,
    loader_sites,
    marked_lines,
    training_loader,
)
from sawbones.stats.learning import constant_answer
from sawbones.stats.loss_calls import places
from sawbones.stats.protocol import sites_in
from sawbones.stats.series import end_level, fell, start_level

NEEDS = ("losses",)
EXPLAINS = (
    "data.labels-misaligned",
    "evaluation.collapsed-prediction",
    "optimizer.lr-too-low",
    "evaluation.overfitting",
)
EXPERIMENT = "draws_held"


def check(run: Run) -> Iterator[Finding]:
    probe = run.facts.get("label_probe") or {}
    trained, stored = probe.get("batches"), probe.get("dataset")
    if run.num_steps < 20:
        return
    beside = list(_of_maps(run))
    if beside:
        yield from beside
        return
    if trained is None:
        yield from _of_numbers(run)
        return
    if fell(run.losses, 0.15) or _informative(trained):
        yield from _in_part(run, trained)
        return
    drawn = run.facts.get("redraw") or {}
    altered = (run.facts.get("samples") or {}).get("altered") or {}
    in_data = drawn.get("changed", 0.0) >= 0.25 and drawn.get("label_changed", 0.0) == 0.0
    in_loop = altered.get("calls", 0) >= 5 and abs(altered.get("correlation", 1.0)) < 0.5
    if not in_data and not in_loop:
        return
    evidence = [
        Evidence(
            f"inputs as trained on say nothing about their labels ({trained['score']:.3f})",
            "label_probe",
            value=trained["score"],
            expected=trained["chance"],
        ),
        Evidence(
            (
                f"loss {start_level(run.losses):.4g} -> {end_level(run.losses):.4g} in "
                f"{run.num_steps} steps"
            ),
            "losses",
        ),
    ]
    if in_loop:
        text = (
            f"what reaches the model correlates by {altered['correlation']:.2f} with what the "
            "loader gave"
        )
        evidence.append(Evidence(text, "samples", value=altered["correlation"], expected=1.0))
    else:
        text = (
            f"{drawn['changed']:.0%} of {drawn['samples']} samples differ when read twice, "
            "labels never"
        )
        evidence.append(Evidence(text, "redraw", value=drawn["changed"]))
    known = in_loop and stored is not None and _informative(stored)
    yield Finding(
        "pipeline.augmentation",
        "likely" if known else "suspected",
        0.96 if known else 0.6,
        "Augmentation destroys what the label depends on",
        _in_loop(run) if in_loop else _in_data(run),
        tuple(evidence),
        Fix("Leave out the transformation that changes the class (or change the label with it)."),
        params={"mode": "loop" if in_loop else "data"},
    )


def _in_part(run: Run, trained: Mapping[str, Any]) -> Iterator[Finding]:
    """Some classes survive and others do not: the loss falls and then stays far above zero."""
    probes = (run.facts.get("redraw") or {}).get("probes") or {}
    base = constant_answer(run, trained)
    if not probes or base is None:
        return
    free, held = probes["free"], probes["held"]
    gap = held["score"] - free["score"]
    if held["kind"] != "classes" or not _informative(held) or gap < 0.15:
        return
    left = end_level(run.losses) / base
    mixed = gap >= 0.25 and held["score"] >= 0.95 and _some_mixed_up(run)
    if left < (0.15 if mixed else 0.3):
        return
    text = (
        f"inputs tell {free['score']:.0%} of the labels as they are drawn, and "
        f"{held['score']:.0%} with all choices held alike"
    )
    yield Finding(
        "pipeline.augmentation",
        "suspected",
        0.6,
        "Augmentation destroys what some labels depend on",
        places(*_made(run), *_in_data(run))[:4],
        (
            Evidence(text, "redraw", value=free["score"], expected=held["score"]),
            Evidence(
                f"the loss stays at {end_level(run.losses):.3g}; a constant answer has {base:.3g}",
                "losses",
            ),
        ),
        Fix("Leave out the transformation that changes the class (or change the label with it)."),
        params={"mode": "data"},
    )


def _some_mixed_up(run: Run) -> bool:
    """Two classes or more are often taken for each other, and another is nearly always told."""
    rows = ((run.facts.get("samples") or {}).get("predictions") or {}).get("classes") or {}
    told = [hits / num for num, hits, _ in rows.values() if num >= 20]
    return sum(t < 0.7 for t in told) >= 2 and max(told, default=0.0) > 0.95


def _of_numbers(run: Run) -> Iterator[Finding]:
    """The label is a few numbers, one of which the inputs tell only while the choices are held: a
    mirrored picture, points left.
    """
    probes = (run.facts.get("redraw") or {}).get("probes") or {}
    if not probes or probes["held"]["kind"] != "values":
        return
    free, held = probes["free"], probes["held"]
    if (
        not _informative(held)
        or held["score"] < 0.3
        or free["z"] >= 4.0
        or free["score"] > 0.35 * held["score"]
    ):
        return
    text = (
        f"number {probes.get('place', 0)} of the label correlates by {free['score']:.2f} with what inputs tell as they are drawn, "
        f"by {held['score']:.2f} with all choices held alike; the label itself never changes"
    )
    yield Finding(
        "pipeline.augmentation",
        "suspected",
        0.6,
        "Augmentation moves what the label tells the place of, and not the label",
        _in_data(run),
        (Evidence(text, "redraw", value=free["score"], expected=held["score"]),),
        Fix(
            "Change the label with the picture (mirror the points too), or leave the "
            "transformation out."
        ),
        params={"mode": "data"},
    )


def _of_maps(run: Run) -> Iterator[Finding]:
    """Masks that would fit their pictures if they were mirrored or turned, which the pictures
    were.
    """
    maps = (run.facts.get("redraw") or {}).get("maps") or {}
    if (
        not maps
        or maps["better_otherwise"] < 0.2
        or maps["fit"] < 0.3
        or maps["fit"] - maps["by_chance"] < 0.15
    ):
        return
    text = (
        f"{maps['better_otherwise']:.0%} of {maps['samples']} masks fit what is seen in their picture clearly better mirrored or "
        f"turned (most often {maps['way']}); pictures change from draw to draw, masks never"
    )
    yield Finding(
        "pipeline.augmentation",
        "proven",
        0.95,
        "Pictures are flipped or turned, and their masks are not",
        _in_data(run),
        (Evidence(text, "redraw", value=maps["better_otherwise"], expected=0.0),),
        Fix(
            "Apply every change of place (flip, turn, crop, shift) to picture and mask "
            "with the same draw."
        ),
    )


def _made(run: Run) -> tuple[Site, ...]:
    """Where the data set is built: its transformations are given to it there."""
    loader = training_loader(run) or {}
    name = str(loader.get("dataset") or "").rsplit(".", 1)[-1]
    return tuple(s for s in marked_lines(run, "use") if name and f"{name}(" in s.code)[:1]


def _informative(probe: dict[str, float]) -> bool:
    return bool(
        probe["z"] >= 4.0 and probe["score"] - probe["chance"] >= 0.1 * (1.0 - probe["chance"])
    )


def _in_data(run: Run) -> tuple[Site, ...]:
    reads = data_function(run, "reads")
    drawing = sites_in(run, ("draw", "order"))
    inside = lines_in(drawing, reads)
    if not inside and reads is not None:  # the data set calls a transformation of its own
        built, loop = (
            data_function(run, "makes"),
            {e.site.function for e in run.of_kind("backward") if e.site is not None},
        )
        apart = [s for s in drawing if s not in lines_in(drawing, built)]
        inside = tuple(
            s
            for s in apart
            if s.file == reads[0] and s.function not in loop | {"<module>", "__init__", "main"}
        )
    start = Site(reads[0], reads[1]) if reads is not None else None
    return places(*inside[:1], start, *loader_sites(run))[:4]


def _in_loop(run: Run) -> tuple[Site, ...]:
    """Operators outside of the model that move values about, before the model is called."""
    deep: DeepStep | None = next((d for d in run.deep[1:] if d.ops), None)
    moving = (
        "gather",
        "__getitem__",
        "flip",
        "roll",
        "index_select",
        "where",
        "masked_fill",
        "take_along_dim",
        "permute",
    )
    first = next((op.index for op in deep.ops if op.module), 0) if deep is not None else 0
    found = (
        [op.site for op in deep.ops if op.index < first and not op.module and op.name in moving]
        if deep is not None
        else []
    )
    return places(*found[::-1][:2], *feeding_sites(run))[:4]
