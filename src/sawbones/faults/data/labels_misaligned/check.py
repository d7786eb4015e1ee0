"""Labels paired with the wrong inputs

## What it sees
The label probe: pairs of model input and loss target as training used them, and samples of the data
set in its own order. A nearest-neighbour vote and a ridge fit predict held-out labels; pairs are
informative when that beats permuted labels by four standard deviations and a tenth of the way to
certainty. Fires when trained pairs do not beat them and the loss on samples not seen before stays
at that of a constant answer (where that is not known: has not come down by 15 %). When the data
set's own pairs are informative and the trained ones are not, pairing broke between data set and
loss, and that alone is proof. Needs 60 samples. Maps of labels (masks) are compared with all
pictures of the set: it fires when the map that fits a picture far better than any other lies beside
another picture, for nearly all pictures that have such a map, and at least 30.

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
Overfit one batch: the first batch is repeated. When model, loss and optimizer can memorise it, they
work, and what is wrong is which label stands beside which input.

## False alarms
Ratings of users and films are left out: ids are names, and neighbours by number tell nothing about
each other. Where nearly all samples are of one class, neighbours cannot answer for the rare one, so
nothing is said. A hard task that has not been cracked yet (parity, long-range copying) also starts
at chance: as soon as the loss falls clearly the check is silent, and a probe that finds a hint (2
standard deviations) silences it too. Generative models, GANs, contrastive and policy losses have no
label in this sense and give no pairs. Language models are judged per token at several offsets.

## References
Inputs and labels shuffled by two different permutations is a classic of published bug studies;
sorting file names on one side only is another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.data_lines import marked_lines
from sawbones.stats.learning import constant_answer, learned
from sawbones.stats.series import end_level, start_level

NEEDS = ("label_probe", "losses")
EXPLAINS = (
    "evaluation.collapsed-prediction",
    "evaluation.overfitting",
    "optimizer.lr-too-low",
    "model.bad-init",
)
EXPERIMENT = "overfit_one_batch"
SIGNAL_Z = 4.0
HINT_Z = 2.0
RARE = 0.8  # of the samples in the commonest class, about
SIGNAL_SHARE = 0.1  # of the way from chance to certainty


def check(run: Run) -> Iterator[Finding]:
    probe = run.facts["label_probe"]
    trained, stored = probe.get("batches"), probe.get("dataset")
    if probe.get("maps"):
        yield from _of_maps(run, probe["maps"])
        return
    if trained is None or trained["z"] >= SIGNAL_Z or run.num_steps < 20 or learned(run, trained):
        return
    if min(probe["z"] for probe in (trained, stored) if probe is not None) >= HINT_Z:
        return  # labels that belong to other inputs give no hint at all
    broken_on_the_way = stored is not None and informative(stored)
    if trained["kind"] == "classes" and trained["chance"] > RARE and not broken_on_the_way:
        # neighbours of a rare class are nearly all of the common one: that they miss it tells
        # nothing
        return
    if not math.isfinite(end_level(run.losses)) or (_are_names(run) and not broken_on_the_way):
        return
    # A model that is a plain function cannot be given one batch over and over: its pairs have to
    # speak for themselves.
    unrepeatable = (
        not run.batches
        and trained["num"] >= 300
        and trained["z"] < 2.0
        and constant_answer(run, trained) is not None
    )
    evidence = [
        Evidence(
            (
                f"inputs predict their labels no better than chance ({trained['score']:.3f} "
                f"on {trained['num']} trained pairs)"
            ),
            "label_probe",
            value=trained["score"],
            expected=trained["chance"],
        ),
        Evidence(
            f"loss stays at {end_level(run.losses):.4g} after {run.num_steps} steps",
            "losses",
            (0, run.num_steps - 1),
            end_level(run.losses),
            start_level(run.losses),
        ),
    ]
    if broken_on_the_way and stored is not None:
        text = (
            f"the pairs of the data set itself are informative ({stored['score']:.3f}): "
            "pairing is lost on the way to the loss"
        )
        evidence.append(
            Evidence(text, "label_probe", value=stored["score"], expected=stored["chance"])
        )
    best = (stored or {}).get("best") or {}
    if best and best["score"] > 2 * best["as_is"] and best["score"] > 0.5:
        text = f"{best['pairing']}, the labels would fit ({best['score']:.3f})"
        evidence.append(Evidence(text, "label_probe", value=best["score"], expected=best["as_is"]))
    yield Finding(
        "data.labels-misaligned",
        "likely" if broken_on_the_way or unrepeatable else "suspected",
        0.95 if broken_on_the_way else 0.8 if unrepeatable else 0.6,
        "Labels do not belong to the inputs they stand beside",
        places(run, broken_on_the_way),
        tuple(evidence),
        Fix(
            "Apply one and the same order to inputs and labels, wherever either is "
            "permuted, sorted, repeated or sampled."
        ),
    )


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
    return (
        bool(given)
        and not features
        and all(len(shape) == 1 or shape[1:] == (1,) for shape in given)
    )


def _of_maps(run: Run, maps: Mapping[str, Any]) -> Iterator[Finding]:
    """Masks beside other pictures than their own: each picture's own one is still in the set, and
    known by how it fits.
    """
    if (
        maps["told"] * maps["samples"] < 30
        or maps["told"] < 0.1
        or maps["own"] > 0.1
        or maps["beside"] > 0.6 * maps["fit"]
    ):
        return
    text = (
        f"{maps['told']:.0%} of {maps['samples']} pictures have one map of labels that fits clearly better than all others "
        f"(correlation {maps['fit']:.2f}); it is the one beside them for {maps['own']:.0%} of these (there: {maps['beside']:.2f})"
    )
    yield Finding(
        "data.labels-misaligned",
        "proven",
        0.97,
        "Maps of labels lie beside other pictures than their own",
        places(run, False),
        (Evidence(text, "label_probe", value=maps["own"], expected=1.0),),
        Fix(
            "List pictures and maps in one and the same order: sort both by the same key, "
            "or look the map up by the picture's name."
        ),
    )


def informative(probe: Mapping[str, Any]) -> bool:
    gain = probe["score"] - probe["chance"]
    return bool(probe["z"] >= SIGNAL_Z and gain >= SIGNAL_SHARE * (1.0 - probe["chance"]))


def places(run: Run, on_the_way: bool) -> tuple[Site, ...]:
    """Lines that change the order of labels or inputs, the likeliest first."""
    scored: dict[Site, float] = {}
    loop = {e.site.function for e in run.of_kind("backward") if e.site is not None} - {"<module>"}
    fetching = {e.site for e in run.of_kind("batch") if e.site is not None}
    begun = {
        (o.site.file, o.site.function): o.site.line for o in run.optimizers if o.site is not None
    }
    kept = {
        (s.file, s.line) for s in marked_lines(run, "split", names=("random_split", "Subset"))
    }  # whole samples are split
    for row in run.facts.get("data_ops", ()):
        site = _site(row["site"])
        if row["op"].endswith("_") and not row["op"].startswith("__"):
            continue  # sets values in place, as initialisation does: it moves none
        if (
            (site.file, site.line) in kept
            or site in fetching
            or site.function in loop
            or site.line > begun.get((site.file, site.function), site.line)
        ):
            continue  # the last: below the optimizer stands the loop, with the order of each epoch
        labels = len(row["shape"]) == 1 and row["dtype"].startswith("int")
        copied = row["op"] in ("tensor", "as_tensor", "from_numpy")  # in the order they have
        scored[site] = scored.get(site, 0.0) + (2.0 if labels else 1.0) * (0.4 if copied else 1.0)
        if (
            on_the_way
            and row["count"] > 1
            and row["op"] in ("sort", "argsort", "__getitem__", "index_select")
        ):
            scored[site] += 3.0
        if row["op"] in ("randperm", "repeat_interleave", "roll", "flip"):
            scored[site] += 1.5
    for site in _drawn_apart(run):
        scored[site] = scored.get(site, 0.0) + 4.0
    for row in run.facts.get("calls", ()):
        site = _site(row)
        if row["kind"] == "order" and site not in fetching and site.function not in loop:
            weight = 1.0 if row["function"] in ("<module>", "main") else 1.5
            weight += (
                1.0
                if str(row["call"]).rsplit(".", 1)[-1]
                in ("argsort", "sort", "sorted", "sort_values")
                else 0.0
            )
            scored[site] = scored.get(site, 0.0) + weight
    for row in run.facts.get("calls", ()):
        if str(row["call"]).rsplit(".", 1)[-1] in (
            "glob",
            "rglob",
            "iglob",
            "listdir",
            "scandir",
            "iterdir",
        ):
            site = _site(
                row
            )  # the order of files by name is rarely that of the list their labels stand in
            scored[site] = scored.get(site, 0.0) + 3.0
    best = sorted(scored, key=lambda s: -scored[s])
    if not best:
        best = [_site(entry["site"]) for entry in run.facts.get("loaders", ()) if entry.get("site")]
    return tuple(best[:3])


def _drawn_apart(run: Run) -> tuple[Site, ...]:
    """One function draws two sets of indices of one size for every batch: the second is where the
    pairs come apart.
    """
    drawn: dict[tuple[str, str, tuple[int, ...]], list[Site]] = {}
    for row in run.facts.get("data_ops", ()):
        if (
            row["op"] in ("randint", "randperm", "multinomial")
            and row["count"] > 1
            and row["dtype"].startswith("int")
        ):
            site = _site(row["site"])
            drawn.setdefault((site.file, site.function, tuple(row["shape"])), []).append(site)
    return tuple(
        max(sites, key=lambda s: s.line) for sites in drawn.values() if len(set(sites)) > 1
    )


def _site(raw: Any) -> Site:
    return Site(raw["file"], raw["line"], raw.get("function", ""), raw.get("code", ""))
