"""Labels paired with the wrong inputs

## What it sees
The label probe: pairs of model input and loss target as training used them, and samples of the data
set in its own order. A nearest-neighbour vote and a ridge fit predict held-out labels; pairs are
informative when that beats permuted labels by four standard deviations and a tenth of the way to
certainty. Fires when trained pairs do not beat them and the loss on samples not seen before stays
at that of a constant answer (where that is not known: has not come down by 15 %). What is learned
by heart counts for nothing where an evaluation stays at chance and another order fits. That is no
more than a suspicion: labels that are noise look the same. It is likely when the same samples do tell
their labels in another order: the data set's own, with as few pairs as were trained on, the one in
which the script held rows and labels before (rows of a table are also found again by their name, as
where groups are sorted by it), or that of numbered files sorted by number where they were sorted as
texts. Needs 60 samples. Maps of labels (masks) are compared with all pictures of the set: it fires
when the map that fits a picture far better than any other lies beside another picture, for nearly
all pictures that have such a map, and at least 30. Targets that are noise
drawn in the step (diffusion) are followed by data flow: it is likely when on each of three deep
steps or more nothing that the model is given was computed from that noise, other noise of the same
kind and shape was added to its input, and the loss ends where a constant answer's is.

## Why it matters
There is nothing to learn: the loss can fall only by memorising, and validation stays at chance for
ever.

## Looks like
Loss hovers at the entropy of the labels; accuracy at chance; a bigger model or another LR changes
nothing.

## Example
    x = x[torch.randperm(len(x))]
    y = y[torch.randperm(len(y))]

## Use instead
    order = torch.randperm(len(x))
    x, y = x[order], y[order]

## Confirm it
Overfit one batch: the first batch is repeated. When not even that is learned, the fault lies in model,
loss or optimizer. When it is, and another order of the samples is informative, labels stand beside the
wrong inputs. Without such an order it stays open. Maps are compared with all pictures, and need no
second run.

## False alarms
Ratings of users and films are left out: ids are names, and neighbours by number tell nothing about
each other. Where nearly all samples are of one class, neighbours cannot answer for the rare one, so
nothing is said. A hard task that has not been cracked yet (parity, long-range copying) also starts
at chance: as soon as the loss falls clearly the check is silent, and a probe that finds a hint (2
standard deviations) silences it too, where no other order says far more. A diffusion or a denoiser
that draws its noise once gives the model something made from it. Random targets of a benchmark or of a placebo have no data with noise
on the other side; soft labels of a GAN's critic are drawn as well, but its loss is not theirs.
Noise2Noise has data in its target. Generative models, GANs, contrastive and policy losses have no
label in this sense and give no pairs. Language models are judged per token at several offsets.

## References
Inputs and labels shuffled by two different permutations is a classic of published bug studies;
sorting file names on one side only is another.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from sawbones.evidence import NothingToJudge, compared, context, exact, finding
from sawbones.evidence.by_heart import only_by_heart
from sawbones.evidence.limit import Limit
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import data as limits
from sawbones.evidence.limits import model as limits_of_models
from sawbones.schema import Finding, Fix, MadeTensors, Run, Site
from sawbones.schema.labels import LabelProbe, LabelsTold, MapPartners
from sawbones.schema.source import as_site
from sawbones.stats.drawn_targets import Draws, drawn_targets, level_at_end, loss_of_constant
from sawbones.stats.label_probes import way_to_certainty, z_of_fewer
from sawbones.stats.learning import learned
from sawbones.stats.series import end_level, start_level
from sawbones.trace.given_lines import given_lines
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import marked_lines

NEEDS = ("losses",)
USES = (
    "probes",
    "label_probe",
    "ops",
    "loss_calls",
    "made_tensors",
    "source_calls",
    "source_lines",
    "loaders",
)
EXPLAINS = (
    "evaluation.collapsed-prediction",
    "evaluation.overfitting",
    "optimizer.lr-too-low",
    "model.bad-init",
)
EXPERIMENT = None  # but for single labels, see below
TRIAL = "overfit_one_batch"
MIN_STEPS = 20  # of training: a loss that has not moved by then may be stuck
MIN_PICTURES = 30  # whose own map is known
MIN_DRAWN = 3  # deep steps that drew their targets: what all of them do, the loop does
SAVED_ORDER = ("glob", "rglob", "iglob", "listdir", "scandir", "iterdir")


def check(run: Run) -> Iterator[Finding]:
    in_other_rows = [*_of_answers(run)]
    if in_other_rows:
        yield from in_other_rows
        return
    drawn = drawn_targets(run) if run.num_steps >= MIN_STEPS else []
    if len(drawn) >= MIN_DRAWN:
        yield from _of_draws(run, drawn)
        return
    if not run.label_probe:
        raise NothingToJudge("inputs and labels could not be paired")
    probe = run.label_probe
    trained, stored = probe.batches, probe.dataset
    if probe.maps:
        yield from _of_maps(run, probe.maps)
        return
    if trained is None or run.num_steps < MIN_STEPS:
        raise NothingToJudge(f"no pairs of inputs and labels over {MIN_STEPS} steps")
    if limits.LABEL_SIGNAL_Z.reached_by(trained.z):
        return
    informative = _otherwise(probe, trained)
    if learned(run, trained) and not (informative and only_by_heart(run, trained)):
        return
    hints = [limits.LABEL_HINT_Z.reached_by(p.z) for p in (trained, stored) if p is not None]
    if all(hints) and not informative:
        return  # labels that belong to other inputs give no hint at all
    if not math.isfinite(end_level(run.losses)):
        return
    if not informative and (_mostly_one_class(trained) or _are_names(run)):
        return
    evidence = [
        compared(
            f"inputs predict their labels no better than chance ({trained.score:.3f} on "
            f"{trained.num} trained pairs)",
            trained.z,
            limits.LABEL_SIGNAL_Z,
            below=True,
            signal="label_probe",
        ),
        context(
            f"loss stays at {end_level(run.losses):.4g} after {run.num_steps} steps",
            signal="losses",
            steps=(0, run.num_steps - 1),
            value=end_level(run.losses),
            expected=start_level(run.losses),
        ),
    ]
    if informative:
        told, text = informative
        evidence.append(compared(text, told.z, limits.LABEL_SIGNAL_Z, signal="label_probe"))
    best = stored.best if stored else None
    if (
        best
        and limits.PAIRING_FITS.passed_by(best.score)
        and limits.PAIRING_GAIN.passed_by(best.score / max(best.as_is, TINY))
    ):
        text = f"{best.name}, the labels would fit ({best.score:.3f})"
        evidence.append(context(text, signal="label_probe", value=best.score, expected=best.as_is))
    yield finding(
        "Labels do not belong to the inputs they stand beside",
        _where(run, informative is not None),
        evidence,
        Fix(
            "Apply one and the same order to inputs and labels, wherever either is "
            "permuted, sorted, repeated or sampled."
        ),
        at_most="likely" if informative else "suspected",
        trial=TRIAL,
    )


def _of_answers(run: Run) -> Iterator[Finding]:
    """A model that sorts its batch, by length for example, and answers in that order: each answer
    is held against another example's label.
    """
    for deep in run.deep:
        rows = deep.probes.get("rows") or {}
        along, again = rows.get("moved_along"), rows.get("found_again")
        moved = not limits.ANSWERS_MOVED_ALONG.reached_by(along)
        if along is None or not moved or not limits.ANSWERS_FOUND_AGAIN.reached_by(again):
            continue
        if limits_of_models.MODEL_UNMOVED.undercut_by(rows.get("others")):
            continue  # no answer depends on where its example stands: they are made of something else
        num = int(rows["examples"])
        forwards = [e for e in run.of_kind("forward") if e.phase == "train"]
        text = (
            f"the {num} examples of a batch were given to a copy of the model in another order: "
            f"{round(along * num)} of its {num} answers moved along with their example, and all "
            "of them were given again, in other rows"
        )
        reading = compared(
            text,
            along,
            limits.ANSWERS_MOVED_ALONG,
            below=True,
            expected=1,
            signal="probes",
            steps=(deep.step,),
        )
        yield finding(
            "The model answers in another order than its examples, and so beside their labels",
            locate(*map(as_site, rows.get("sites") or ()), *forwards[:1]),
            (reading,),
            Fix(
                "Put the answers back in the order of the examples: answers[order.argsort()]. "
                "pack_padded_sequence with enforce_sorted=False sorts and puts back by itself."
            ),
            at_most="likely",  # labels may be put in that order by what is no tensor
        )
        return


def _otherwise(probe: LabelProbe, trained: LabelsTold) -> tuple[LabelsTold, str] | None:
    """Another order of the same samples in which they do tell their labels: without one, labels
    that are noise look like labels beside the wrong inputs.
    """
    before, stored = probe.before, probe.dataset
    if before and _informative(before.then, before.now.z, limits.LABEL_ORDER_Z):
        text = (
            f"{before.order}, the same inputs do predict their labels ({before.then.score:.3f}; as "
            f"they are trained on {before.now.score:.3f})"
        )
        return before.then, text
    if stored is None:
        return None
    text = (
        f"the pairs of the data set itself are informative ({stored.score:.3f}): pairing is lost "
        "on the way to the loss"
    )
    # Few pairs miss what many show.
    fewer = replace(stored, z=z_of_fewer(stored, trained.num))
    return (stored, text) if _informative(fewer, trained.z, limits.LABEL_SIGNAL_Z) else None


def _informative(probe: LabelsTold, z_as_trained: float, least: Limit) -> bool:
    """Clearly more so than as they are trained on."""
    gap = probe.z - max(0, z_as_trained)
    return least.reached_by(gap) and limits.LABEL_SIGNAL_GAIN.reached_by(way_to_certainty(probe))


def _mostly_one_class(probe: LabelsTold) -> bool:
    return probe.kind == "classes" and limits.COMMONEST_LABEL.passed_by(probe.chance)


def _are_names(run: Run) -> bool:
    """Inputs that are one id each (a user, a film) and no features: neighbouring numbers have
    nothing in common.
    """
    given = [t.shape for deep in run.deep[:1] for t in deep.tokens if t.role == "tokens"]
    features = any(
        str(t.get("dtype", "")).startswith("float") and len(t.get("shape") or ()) >= 2
        for b in run.batches[:1]
        for t in b.tensors
    )
    single = all(len(shape) == 1 or shape[1:] == (1,) for shape in given)
    return bool(given) and single and not features


def _of_maps(run: Run, maps: MapPartners) -> Iterator[Finding]:
    """Masks beside other pictures than their own: each picture's own one is still in the set, and
    known by how it fits.
    """
    recognised, num = maps.told, maps.samples
    if recognised * num < MIN_PICTURES or not limits.MAPS_RECOGNISED.reached_by(recognised):
        raise NothingToJudge("too few pictures have one map of labels that fits them best")
    if not limits.OWN_MAPS.kept_by(maps.own) or not limits.FIT_BESIDE.kept_by(
        maps.beside / max(maps.fit, TINY)
    ):
        return
    text = (
        f"{recognised:.0%} of {num} pictures have one map of labels that fits clearly better than "
        f"all others (correlation {maps.fit:.2f}); it is the one beside them for "
        f"{maps.own:.0%} of these (there: {maps.beside:.2f})"
    )
    reading = compared(
        text, maps.own, limits.OWN_MAPS, below=True, expected=1, signal="label_probe"
    )
    yield finding(
        "Maps of labels lie beside other pictures than their own",
        _where(run, False),
        (reading,),
        Fix(
            "List pictures and maps in one and the same order: sort both by the same key, "
            "or look the map up by the picture's name."
        ),
    )


def _of_draws(run: Run, drawn: Sequence[Draws]) -> Iterator[Finding]:
    """The target is noise, and the model is given other noise of the same kind."""
    if any(d.is_given or d.given is None for d in drawn):
        return
    constant = median(loss_of_constant(d) for d in drawn)
    level = level_at_end(run, drawn)
    ratio = level / constant if constant > 0 else math.nan
    if not (limits.LEARNED_OF_DRAWS.reached_by(ratio) and limits.OFF_CONSTANT.kept_by(ratio)):
        return
    target, given = drawn[-1].target, drawn[-1].given
    steps = [d.seen.deep.step for d in drawn]
    yield finding(
        "The target is noise that is not in the model's input, which has noise of its own",
        _noised_at(run, drawn[-1]),
        (
            exact(
                f"of {len(drawn)} deep steps, those whose input was computed from the numbers "
                f"drawn at {target.site}, which are the target; the input has those drawn at "
                f"{given.site if given else None}, of the same shape",
                0,
                expected=len(drawn),
                signal="ops",
                steps=steps,
            ),
            compared(
                f"the loss ends at {level:.4g}; a constant answer to such numbers has "
                f"{constant:.4g}",
                ratio,
                limits.LEARNED_OF_DRAWS,
                signal="losses",
                steps=(run.num_steps - 1,),
            ),
        ),
        Fix("Draw the noise once, and use this one both to make the input and as the target."),
        at_most="likely",  # what is done outside of torch was not followed
    )


def _noised_at(run: Run, drawn: Draws) -> tuple[Site, ...]:
    """Where the function that draws for the input is called, and both draws."""
    given = drawn.given.site if drawn.given is not None else None
    called = [e.site for e in run.of_kind("forward") if e.phase == "train"][:1]
    lines = [line for site in called for line in (*given_lines(run, site), site) if line]
    calls = [line for line in lines if given is not None and f"{given.function}(" in line.code]
    return locate(*calls[:1], given, drawn.target, *called)


def _where(run: Run, on_the_way: bool) -> tuple[Site, ...]:
    """Lines that change the order of labels or inputs, the likeliest first. Weights in tenths."""
    loop = {e.site.function for e in run.of_kind("backward") if e.site is not None} - {"<module>"}
    fetching = {e.site for e in run.of_kind("batch")}
    begun = {
        (o.site.file, o.site.function): o.site.line for o in run.optimizers if o.site is not None
    }
    # whole samples are split
    kept = {(s.file, s.line) for s in marked_lines(run, "split", names=("random_split", "Subset"))}
    weights: Counter[Site] = Counter()
    for row in run.made_tensors:
        site = row.site
        in_place = row.op.endswith("_") and not row.op.startswith("__")
        if (
            site is None
            or in_place  # as initialisation does: it moves no values
            or (site.file, site.line) in kept
            or site in fetching
            or site.function in loop
            # below the optimizer stands the loop, with the order of each epoch
            or site.line > begun.get((site.file, site.function), site.line)
        ):
            continue
        weights[site] += _weight(row, on_the_way)
    for site in _drawn_apart(run):
        weights[site] += 40
    calls = run.source_calls
    for call in calls:
        site = call.site
        if call.kind == "order" and site not in fetching and site.function not in loop:
            weights[site] += 10 if site.function in ("<module>", "main") else 15
            weights[site] += 10 * (call.function in ("argsort", "sort", "sorted", "sort_values"))
    for call in calls:
        # the order of files by name is rarely that of the list their labels stand in
        if call.function in SAVED_ORDER:
            weights[call.site] += 30
    best = [site for site, _ in weights.most_common(3)]
    before = run.label_probe.before if run.label_probe and on_the_way else None
    if before is not None and (apart := before.apart) is not None:
        lines = [site for site in weights if (site.file, site.line) == (apart.file, apart.line)]
        best = [*(lines[:1] or [apart]), *(site for site in best if site not in lines)]
    loaders = [loader.site for loader in run.loaders]
    return tuple(best or [s for s in loaders if s is not None][:3])


def _weight(row: MadeTensors, on_the_way: bool) -> int:
    labels = len(row.shape) == 1 and row.dtype.startswith("int")
    copied = row.op in ("tensor", "as_tensor", "from_numpy")  # in the order they have
    weight = (2 if labels else 1) * (4 if copied else 10)
    picks = row.op in ("sort", "argsort", "__getitem__", "index_select")
    if on_the_way and row.count > 1 and picks:
        weight += 30
    if row.op in ("randperm", "repeat_interleave", "roll", "flip"):
        weight += 15
    return weight


def _drawn_apart(run: Run) -> tuple[Site, ...]:
    """One function draws two sets of indices of one size for every batch: the second is where the
    pairs come apart.
    """
    drawn: dict[tuple[Any, ...], set[Site]] = {}
    for row in run.made_tensors:
        site = row.site
        draws = row.op in ("randint", "randperm", "multinomial")
        several = math.prod(row.shape) > 1  # a single number is no order
        if site and draws and several and row.count > 1 and row.dtype.startswith("int"):
            drawn.setdefault((site.file, site.function, *row.shape), set()).add(site)
    return tuple(max(sites, key=lambda s: s.line) for sites in drawn.values() if len(sites) > 1)
