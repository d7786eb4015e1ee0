"""Validation on samples that the model was trained on

## What it sees
A 64-bit fingerprint of every sample of every batch. Fires when at least 90 % of the distinct
samples that were evaluated were also trained on by the same model, and no other evaluation reads
new samples; after the first evaluation of a trained sample. Beside evaluations of new samples: when
the script holds the trained rows without the evaluated ones as a part of its own, or the numbers of
both parts, and trains on all of them; or when every evaluation until the last step reads a second
data set with all the rows of training, by which the weights are chosen that are put back in the end
(a suspicion where none are), and new samples are read once, afterwards. Suspects where the same
held-out rows are scored at four steps or more and the run ends with the best of these scores:
printed, or of the weights of that step put back and scored on these rows again. Other held-out rows
were scored at the same steps and would not have chosen that one, and their score of it is not
reported; or there are none, and where one half of the rows chooses the step and the other half is
scored, the best lies outside of the interval of what is left. Of windows cut out of one long text:
fires when all evaluated ones lie in the stretch that training reads, and another stretch is never
read.

## Why it matters
The validation score measures memory. Overfitting is invisible, and early stopping and model
selection have nothing to go by.

## Looks like
Validation follows training to the last digit and keeps improving; the model fails on new data.

## Example
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(train_set, batch_size=64)

## Use instead
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=64)

## Confirm it
No experiment is needed: the samples are the same bit for bit.

## False alarms
Short windows of a text with few words coincide: samples of whole numbers that repeat within their
first round do not count. Accuracy on training batches beside a real validation set stays silent:
some evaluated samples are new, and nobody splits the rest of the training rows off; a second loader
over the training set itself, or a look at some of its rows, is no second data set. Rows that
are trained on only after their evaluation do not count. Where every call is given the nodes of one
graph and the loss is about some of them, they are told apart behind the model. A script that
evaluates the loader it trains on and has no other
data only watches its training: suspected at most. The best of many scores on the only held-out rows
there are stays silent within that interval: whether they are for choosing or for the result, nothing
but their name says. So does a choice that rows, or their loss, would also have made whose part it
is, and any run that scores rows in the end that it never scored before. Folds of a cross-validation are told apart by
their optimizers. A batch that a teacher sees inside of a training step is not an evaluation.

## References
Kapoor and Narayanan, "Leakage and the reproducibility crisis in machine-learning-based science"
(2023), leak L1.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sawbones.evidence import NothingToJudge, compared, context, counted, finding
from sawbones.evidence.choosing import chosen_on_its_rows
from sawbones.evidence.limits import evaluation as limits
from sawbones.schema import Batch, Finding, Fix, Run
from sawbones.stats.overlaps import repeat_share
from sawbones.stats.splits import Split, are_picked, by_width, shared, splits
from sawbones.trace.feeding import built_loaders, model_calls
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import marked_lines

NEEDS = ("batches", "validation", "steps")
USES = (
    "evaluation",
    "loaders",
    "sources",
    "populations",
    "restored",
    "source_lines",
    "states_taken",
)
EXPLAINS = ("evaluation.leak-contamination",)
EXPERIMENT = None
MIN_SAMPLES = 8  # evaluated: fewer may be examples to look at
MIN_WINDOWS = 200  # trained, so that they show which stretch of a text is read
MIN_EVALUATIONS = 2  # of windows: the places of one are few


def check(run: Run) -> Iterator[Finding]:
    parts = splits(run)
    chosen = list(_chosen_on_the_test(run))
    if not chosen and not run.evaluation.streams and not any(part.sources() for part in parts):
        raise NothingToJudge("no evaluated sample could be compared with trained ones")
    found = [f for part in parts for f in _of(run, part)] if not _meets_new_rows(run) else []
    if found and len(found) == len(parts):
        yield found[0]
    else:
        known = list(_left_out(run)) or list(_built_again(run, parts)) or list(_one_stretch(run))
        yield from known or chosen


def _chosen_on_the_test(run: Run) -> Iterator[Finding]:
    """The best of many moments is chosen by rows whose score at that moment is the result."""
    seen = chosen_on_its_rows(run)
    if seen is None:
        return
    reported = "put back and scored on them again" if seen.put_back else "what is printed"
    text = (
        f"{seen.rows} held-out rows were scored at {seen.times} steps; the best of these scores, "
        f"{seen.score:.3f} after step {seen.steps[0]}, is {reported} in the end, not the last one, "
        f"{seen.last:.3f}"
    )
    halves = (
        f"where one half of these rows chooses the moment, the other half scores {seen.honest:.3f} "
        f"(at most {seen.upper:.3f} for as many new rows)"
    )
    evidence = [
        compared(text, seen.times, limits.CHOSEN_AMONG, signal="populations", steps=seen.steps[:5])
    ]
    evidence.append(context(halves, signal="populations"))
    if seen.beside is not None:
        text = (
            f"{seen.beside.rows} other held-out rows, which had no part in that choice, score "
            f"{seen.beside.score:.3f} at that step; that is not what is reported"
        )
        evidence.append(context(text, signal="populations"))
    kept = run.states_taken if seen.put_back else ()
    yield finding(
        "The reported score is the best of many on the rows that it was chosen by",
        locate(*kept[:1], *seen.sites[1:2], seen.put_back, *seen.sites),
        tuple(evidence),
        Fix(
            "Choose the moment by the score on validation rows, and score the test rows once, "
            "with the weights that were chosen."
        ),
        at_most="suspected",
    )


def _meets_new_rows(run: Run) -> bool:
    """An evaluation of rows that no loader gave and that were hardly trained on."""
    return any(
        p.rows >= MIN_SAMPLES and limits.KNOWN_IN_BATCH.undercut_by(p.known)
        for p in run.populations.passes
    )


def _left_out(run: Run) -> Iterator[Finding]:
    """Rows that are evaluated after they were trained on, where the script holds the trained rows
    without them as a part of its own: the split was made, and all rows are trained on.
    """
    seen = run.sources.left_out
    if seen is None or not limits.FEWER_THAN_TRAINED.undercut_by(seen.again / seen.trained):
        return
    text = (
        f"{seen.again} evaluated rows were trained on before; the script holds the other "
        f"{seen.held} as a part of their own, and trains on all {seen.trained}"
    )
    yield finding(
        "The model is trained on the part that was split off for evaluation",
        locate(seen.site, *built_loaders(run, *sorted(_sources(run)))),
        (counted(text, seen.again, seen.again, limits.KNOWN_SAMPLES, signal="sources"),),
        Fix("Train on the training part of the split alone."),
    )


def _built_again(run: Run, parts: Sequence[Split]) -> Iterator[Finding]:
    """A second data set that holds the rows of training stands where the validation set should, and
    new rows come after the last step: a test set.
    """
    if len(parts) != 1 or _has_duplicates(parts[0].trained) or _coincides(parts[0].trained):
        return
    part, trained_on = parts[0], parts[0].trained_on
    loaders = {loader.source: loader for loader in run.loaders}
    by_data: dict[int | None, list[Batch]] = {}
    for source, batches in part.sources().items():
        data = loaders[source].data if source in loaders else None
        by_data.setdefault(data, []).extend(batches)
    own = {loaders[s].data for s in part.trained_sources if s in loaders}
    before = {d for d, batches in by_data.items() if any(b.step < run.num_steps for b in batches)}
    if len(before) != 1 or None in before or before & own or not own:
        return
    (data,) = before
    hit, total = shared(by_data[data], trained_on)
    if not limits.KNOWN_SAMPLES.reached_by(min(hit / total, total / len(trained_on))):
        return
    read = sorted({b.source for b in by_data[data]})
    chosen = any(r.step >= run.num_steps and not r.is_own for r in run.loaded_weights)
    text = (
        f"{hit} of {total} evaluated samples were trained on, bit for bit: a second data set holds "
        "them, and other samples are read after the last step only"
    )
    evidence = (counted(text, hit, total, limits.KNOWN_SAMPLES, signal="batches"),)
    names = [name for source in read for name in loaders[source].held_as]
    made = [site for name in names for site in marked_lines(run, "assign", names=(name,))]
    yield finding(
        "The model is validated on a second copy of the samples it is trained on",
        locate(*made[:1], *built_loaders(run, *read))[:4],
        evidence,
        Fix("Build the validation set from the part of the split that is held out for it."),
        at_most="likely" if chosen else "suspected",
    )


def _sources(run: Run) -> set[str]:
    return {source for part in splits(run) for source in part.trained_sources}


def _of(run: Run, part: Split) -> Iterator[Finding]:
    sources = part.sources()
    if not sources or _has_duplicates(part.trained) or _coincides(part.trained):
        return
    if are_picked(run, part):
        return
    trained_on = part.trained_on
    counts = [shared(batches, trained_on) for batches in sources.values()]
    if any(
        total < MIN_SAMPLES or not limits.KNOWN_SAMPLES.reached_by(hit / total)
        for hit, total in counts
    ):
        return
    if any(
        limits.KNOWN_IN_BATCH.undercut_by(shared([b], trained_on)[0] / len(b.fingerprints))
        for batches in sources.values()
        for b in batches
    ):
        return  # one batch of new samples among them is a validation set
    hit, total = sum(h for h, _ in counts), sum(t for _, t in counts)
    own = [s for s in sources if s not in part.trained_sources]
    unused = _unused_loaders(run)
    fewer = limits.FEWER_THAN_TRAINED.undercut_by(total / len(trained_on))
    steps = sorted({b.step for b in part.evaluated})[:5]
    text = f"{hit} of {total} evaluated samples were trained on, bit for bit"
    evidence = [
        counted(text, hit, total, limits.KNOWN_SAMPLES, signal="batches", steps=steps),
    ]
    if unused:
        text = f"{unused} DataLoader(s) were built and never read"
        evidence.append(context(text, signal="loaders"))
    fetched = [e.site for e in run.of_kind("batch") if e.step in steps and e.phase == "eval"][:1]
    built = built_loaders(run, *own)
    yield finding(
        "The model is validated on the samples it is trained on",
        locate(*(built if own else fetched), *model_calls(run, "eval", steps)[:1]),
        evidence,
        Fix(
            "Evaluate on data held out from training: give the validation loader the "
            "other part of the split."
        ),
        # Who has no other data may only watch the training.
        at_most="likely" if own or unused or fewer else "suspected",
    )


def _one_stretch(run: Run) -> Iterator[Finding]:
    """Windows of one long text: evaluations read the stretch that training reads, and the rest of
    it is never read.
    """
    both = [r for r in run.evaluation.streams if r.eval.windows]
    if not both or any(not r.train.windows for r in both):
        return
    row = max(both, key=lambda r: r.train.windows)
    train, held, length = row.train, row.eval, row.size
    if (
        train.windows < MIN_WINDOWS
        or held.windows < MIN_SAMPLES
        or len(row.steps) < MIN_EVALUATIONS
    ):
        return
    width = length / train.windows  # between neighbours among windows at random places
    unread = max(train.first, length - 1 - train.last)
    beyond = max(train.first - held.first, held.last - train.last)
    if (
        not limits.WINDOWS_BEYOND.kept_by(beyond / width)
        or not limits.UNREAD_TEXT.reached_by(unread / length)
        or not limits.UNREAD_WINDOWS.reached_by(unread / width)
        or not limits.MOST_UNREAD.kept_by(unread / length)
    ):
        return
    text = (
        f"{held.windows} evaluated windows lie between places {held.first} and "
        f"{held.last} of a text, training reads {train.first} to {train.last}; the other "
        f"{unread} of {length} places are never read"
    )
    reading = compared(
        text,
        unread / length,
        limits.UNREAD_TEXT,
        expected=0,
        signal="evaluation",
        steps=row.steps[:5],
    )
    yield finding(
        "The model is validated on the stretch of text it is trained on",
        locate(row.site, *model_calls(run, "eval", row.steps)[:1]),
        (reading,),
        Fix("Cut the windows of an evaluation out of the part that training does not read."),
    )


def _coincides(batches: tuple[Batch, ...]) -> bool:
    """Samples of whole numbers that come again before all of them have come once: windows of a text
    with few different ones.
    """
    if by_width(batches)[0]:
        return False
    prints = [f for batch in batches for f in batch.fingerprints]
    early = prints[: max(MIN_SAMPLES, len(set(prints)) // 2)]
    return limits.EARLY_REPEATS.passed_by(repeat_share(early))


def _has_duplicates(batches: tuple[Batch, ...]) -> bool:
    """Many samples twice in one epoch: copies made before the split would look like this too."""
    by_epoch: dict[tuple[str, int], list[int]] = {}
    for batch in batches:
        if batch.source != "model":
            by_epoch.setdefault((batch.source, batch.epoch), []).extend(batch.fingerprints)
    return any(
        limits.TRAINING_COPIES.passed_by(repeat_share(prints))
        for prints in by_epoch.values()
        if len(prints) >= MIN_SAMPLES
    )


def _unused_loaders(run: Run) -> int:
    read = {b.source for b in run.batches}
    return sum(bool(x.size) and x.source not in read for x in run.loaders)
