"""Augmentation that destroys what the label is about

## What it sees
Whether inputs are changed at random: two reads of one sample of the data set differ, or what
reaches the model has little to do with what the loader gave (their correlation is under a half).
Fires when that is so, the loss has not come down by 15 %, and the inputs that were trained on say
nothing about their labels. Also when the loss stays above 30 % of that of a constant answer and
samples tell their labels far better with all random choices held alike (above 15 %, where they tell
all labels then, and the model mixes up two classes and tells another); and when one of a few
numbers that make up the label is told by the inputs only then. And when pictures change from draw
to draw and a fifth or more of the masks would fit clearly better mirrored or turned: the picture
was flipped alone, or its mask along another axis. Needs 20 steps.

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
Confirmed when the loss then falls clearly further. Masks are compared with their pictures in every
position, and need no second run.

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

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, compared, context, finding
from sawbones.evidence.limits import data as label_limits
from sawbones.evidence.limits import pipeline as limits
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.schema.labels import DrawsHeld, LabelProbe, LabelsTold, MapFit, Redraw
from sawbones.schema.samples import Altered, Samples
from sawbones.stats.label_probes import way_to_certainty
from sawbones.stats.learning import constant_answer
from sawbones.stats.series import end_level, fell, start_level
from sawbones.trace.feeding import feeding_sites, loader_sites, training_loader
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import calls_of, lines_in, marked_lines

NEEDS = ("losses",)
USES = ("label_probe", "redraw", "samples", "data_code", "source_calls", "source_lines", "loaders")
EXPLAINS = (
    "data.labels-misaligned",
    "evaluation.collapsed-prediction",
    "optimizer.lr-too-low",
    "evaluation.overfitting",
)
EXPERIMENT = None  # but where labels are no maps, see below
TRIAL = "draws_held"
MIN_STEPS = 20  # of training: a loss that has not moved by then may be stuck
MIN_ALTERED = 5  # batches that changed between loader and model
MIN_OF_CLASS = 20  # samples, so that a share of them says something
MOVING = (
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
LEAVE_OUT = "Leave out the transformation that changes the class (or change the label with it)."


def check(run: Run) -> Iterator[Finding]:
    probe = run.label_probe or LabelProbe()
    redraw = run.redraw or Redraw(0, 0)
    trained, stored = probe.batches, probe.dataset
    judgeable = trained is not None or redraw.maps or redraw.probes
    if run.num_steps < MIN_STEPS or not judgeable:
        raise NothingToJudge(
            f"over {MIN_STEPS} steps no inputs were paired with labels and no samples read twice"
        )
    beside = list(_of_maps(run, redraw.maps))
    if beside:
        yield from beside
    elif trained is None:
        yield from _of_numbers(run, redraw.probes)
    elif fell(run.losses, limits.LOSS_FALL.value) or _informative(trained):
        yield from _in_part(run, trained, redraw.probes)
    else:
        yield from _nothing_left(run, trained, stored, redraw)


def _nothing_left(
    run: Run,
    trained: LabelsTold,
    stored: LabelsTold | None,
    redraw: Redraw,
) -> Iterator[Finding]:
    """What the model gets says nothing about its labels, and it was changed at random."""
    altered = (run.samples or Samples()).altered or Altered(0, 1)
    in_loop = altered.calls >= MIN_ALTERED and limits.KEPT_CORRELATION.undercut_by(
        abs(altered.correlation)
    )
    in_data = limits.REDRAWN_SAMPLES.reached_by(redraw.changed) and redraw.label_changed == 0
    if in_loop:
        change = compared(
            f"what reaches the model correlates by {altered.correlation:.2f} with what the "
            "loader gave",
            altered.correlation,
            limits.KEPT_CORRELATION,
            below=True,
            expected=1,
            signal="samples",
        )
    elif in_data:
        change = compared(
            f"{redraw.changed:.0%} of {redraw.samples} samples differ when read twice, "
            "labels never",
            redraw.changed,
            limits.REDRAWN_SAMPLES,
            signal="redraw",
        )
    else:
        return
    known = in_loop and stored is not None and _informative(stored)
    yield finding(
        "Augmentation destroys what the label depends on",
        _in_loop(run) if in_loop else _in_data(run),
        (
            context(
                f"inputs as trained on say nothing about their labels ({trained.score:.3f})",
                signal="label_probe",
                value=trained.score,
                expected=trained.chance,
            ),
            context(
                f"loss {start_level(run.losses):.4g} -> {end_level(run.losses):.4g} in "
                f"{run.num_steps} steps",
                signal="losses",
            ),
            change,
        ),
        Fix(LEAVE_OUT),
        at_most="likely" if known else "suspected",
        trial=TRIAL,
        params={"mode": "loop" if in_loop else "data"},
    )


def _in_part(run: Run, trained: LabelsTold, probes: DrawsHeld | None) -> Iterator[Finding]:
    """Some classes survive and others do not: the loss falls and then stays far above zero."""
    base = constant_answer(run, trained)
    if not probes or base is None:
        return
    free, held = probes.free, probes.held
    gap, end = held.score - free.score, end_level(run.losses)
    if held.kind != "classes" or not _informative(held) or not limits.LABELS_LOST.suspected_by(gap):
        return
    mixed = (
        limits.LABELS_LOST.reached_by(gap)
        and limits.LABELS_TOLD.reached_by(held.score)
        and _some_mixed_up(run)
    )
    enough = limits.LOSS_LEFT.suspected_by if mixed else limits.LOSS_LEFT.reached_by
    if not enough(end / base):
        return
    text = (
        f"inputs tell {free.score:.0%} of the labels as they are drawn, and "
        f"{held.score:.0%} with all choices held alike"
    )
    loss = f"the loss stays at {end:.3g}; a constant answer has {base:.3g}"
    yield finding(
        "Augmentation destroys what some labels depend on",
        locate(*_made(run), *_in_data(run))[:4],
        (
            context(text, signal="redraw", value=free.score, expected=held.score),
            compared(loss, end, limits.LOSS_LEFT, against=base, signal="losses"),
        ),
        Fix(LEAVE_OUT),
        at_most="suspected",
        trial=TRIAL,
        params={"mode": "data"},
    )


def _some_mixed_up(run: Run) -> bool:
    """Two classes or more are often taken for each other, and another is nearly always told."""
    rows = (run.samples or Samples()).predictions.classes.values()
    told = [row.right / row.wanted for row in rows if row.wanted >= MIN_OF_CLASS]
    mixed = [share for share in told if limits.CLASS_MIXED_UP.undercut_by(share)]
    return len(mixed) >= 2 and limits.LABELS_TOLD.passed_by(max(told))


def _of_numbers(run: Run, probes: DrawsHeld | None) -> Iterator[Finding]:
    """The label is a few numbers, one of which the inputs tell only while the choices are held: a
    mirrored picture, points left.
    """
    if not probes or probes.held.kind != "values":
        return
    free, held = probes.free, probes.held
    if (
        not _informative(held)
        or not limits.NUMBER_TOLD.reached_by(held.score)
        or label_limits.LABEL_SIGNAL_Z.reached_by(free.z)
        or not limits.NUMBER_KEPT.kept_by(free.score / held.score)
    ):
        return
    text = (
        f"number {probes.place} of the label correlates by {free.score:.2f} with what "
        f"inputs tell as they are drawn, by {held.score:.2f} with all choices held alike; the "
        "label itself never changes"
    )
    reading = compared(
        text,
        free.score,
        limits.NUMBER_KEPT,
        below=True,
        against=held.score,
        signal="redraw",
    )
    yield finding(
        "Augmentation moves what the label tells the place of, and not the label",
        _in_data(run),
        (reading,),
        Fix(
            "Change the label with the picture (mirror the points too), or leave the "
            "transformation out."
        ),
        at_most="suspected",
        trial=TRIAL,
        params={"mode": "data"},
    )


def _of_maps(run: Run, maps: MapFit | None) -> Iterator[Finding]:
    """Masks that would fit their pictures if they were mirrored or turned, which the pictures
    were.
    """
    if (
        not maps
        or not limits.MASKS_TURNED.reached_by(maps.better_otherwise)
        or not limits.MASK_FIT.reached_by(maps.fit)
        or not limits.MASK_FIT_GAIN.reached_by(maps.fit - maps.by_chance)
    ):
        return
    follow = run.redraw is not None and run.redraw.label_changed > 0
    masks = "masks in another way" if follow else "masks never"
    text = (
        f"{maps.better_otherwise:.0%} of {maps.samples} masks fit what is seen in their "
        f"picture clearly better mirrored or turned (most often {maps.way}); pictures change "
        f"from draw to draw, {masks}"
    )
    turned = maps.better_otherwise
    yield finding(
        f"Pictures are flipped or turned, and their masks {'otherwise' if follow else 'are not'}",
        _in_data(run),
        (compared(text, turned, limits.MASKS_TURNED, expected=0, signal="redraw"),),
        Fix(
            "Apply every change of place (flip, turn, crop, shift) to picture and mask "
            "with the same draw."
        ),
    )


def _made(run: Run) -> tuple[Site, ...]:
    """Where the data set is built: its transformations are given to it there."""
    loader = training_loader(run)
    name = loader.dataset if loader else ""
    return tuple(s for s in marked_lines(run, "use") if name and f"{name}(" in s.code)[:1]


def _informative(probe: LabelsTold) -> bool:
    return label_limits.LABEL_SIGNAL_Z.reached_by(
        probe.z
    ) and label_limits.LABEL_SIGNAL_GAIN.reached_by(way_to_certainty(probe))


def _in_data(run: Run) -> tuple[Site, ...]:
    reads = run.data_code.reads
    drawing = calls_of(run, ("draw", "order"))
    inside = lines_in(drawing, reads)
    if not inside and reads is not None:  # the data set calls a transformation of its own
        built = lines_in(drawing, run.data_code.makes)
        loop = {e.site.function for e in run.of_kind("backward") if e.site is not None}
        elsewhere = loop | {"<module>", "__init__", "main"}
        inside = tuple(
            s
            for s in drawing
            if s not in built and s.file == reads[0] and s.function not in elsewhere
        )
    start = Site(reads[0], reads[1]) if reads is not None else None
    return locate(*inside[:1], start, *loader_sites(run))[:4]


def _in_loop(run: Run) -> tuple[Site, ...]:
    """Operators outside of the model that move values about, before the model is called."""
    ops = next((d.ops for d in run.deep[1:] if d.ops), ())
    first = next((op.index for op in ops if op.module), 0)
    found = [op.site for op in ops if op.index < first and not op.module and op.name in MOVING]
    return locate(*found[::-1][:2], *feeding_sites(run))[:4]
