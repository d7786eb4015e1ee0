"""A served model that answers otherwise than the trained one

## What it sees
Two evaluations of the same rows without a training step between them: by the trained model and by
a copy of it (reloaded, exported, scripted, averaged, cast or quantised: a module that was not
trained and has the same parameters or layers by name), or by one model with rows that were prepared
in another way (in the same order, most columns the same but for scale and offset). Fires when at
least 5 % of the rows get another class (a quantity: answers that lie 5 % of their spread apart),
and, unless the copy has the very same parameters, when it is worse row by row by 3 points or more
at the lower end of the interval. Proven where the rows are equal bit for bit, the parameters are
the same, neither is in training mode and those 3 points are lost: no answer should differ then. Also when pictures of one evaluation vary together in their
channels as those of the other do only once the channels are put into another order (BGR for RGB),
or when the model, far worse on pictures of one evaluation, regains 80 % of that for the same
pictures with one such step taken back (channels, 0 to 255, upside down, turned; for a copy also other
means and spreads of the channels).

## Why it matters
What was validated is not what answers. The score of the trained model says nothing of it.

## Looks like
Good validation and poor first days; the same row gets two answers, in the notebook and from the
service.

## Example
    served = Network()
    served.load_state_dict(torch.load("model.pt"))
    answer = served(raw_row)

## Use instead
    served = Network()
    served.load_state_dict(torch.load("model.pt"))
    served.eval()
    answer = served(prepare(raw_row))

## Confirm it
Both answers are those of the same rows: there is nothing more to try. To find the step that parts
them, compare the inputs first, then the outputs layer by layer.

## False alarms
Weights of 8 bits or of half precision change a class in a hundred. A student, a second model or an
untrained one has other parameters and is no copy. An average of the weights may answer otherwise
and better. Rows with noise added, one column shuffled or cut out are no second preparation: most
columns of one must follow the other exactly. Pictures of another kind differ in any order of their
channels, and grey ones in none.

## References
Breck et al., "The ML test score" (2017), "Training and serving are not skewed". PyTorch's
documentation of torch.ao.quantization.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, compared, context, exact, finding
from sawbones.evidence.limits import deployment as limits
from sawbones.evidence.populations import where
from sawbones.schema import Evidence, Finding, Fix, Run
from sawbones.schema.populations import Likeness, PutBack, ServedPair, SwappedChannels

NEEDS = ("populations",)
USES = ("source_lines",)
EXPLAINS = (
    "deployment.covariate-shift",
    "deployment.concept-drift",
    "deployment.pipeline-drift",
    "evaluation.preprocessing-mismatch",
)
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    seen = run.populations
    if seen.put_back is not None:
        yield _put_back(run, seen.put_back)
        return
    if seen.channels is not None:
        yield _swapped(run, seen.channels)
        return
    if not seen.served:
        raise NothingToJudge("no rows were evaluated twice, by a copy or prepared in another way")
    for pair in seen.served:
        if _differs(pair):
            yield _parted(run, pair)
            return


def _swapped(run: Run, seen: SwappedChannels) -> Finding:
    order = ", ".join(map(str, seen.order))
    text = (
        f"over {seen.rows} pictures the correlations between channels are {seen.apart:.2f} "
        f"from those of the other evaluation; in the order {order} only {seen.left:.2f} "
        f"(chance: {seen.noise:.2f})"
    )
    return finding(
        "Pictures are given with their channels in another order",
        where(run, seen.sites),
        (compared(text, seen.apart, limits.OTHER_CHANNELS, expected=0, signal="populations"),),
        Fix(
            f"Put the channels into the order of training before anything else is done to them: "
            f"channels {order} of what comes (BGR to RGB: frame[..., ::-1]). Best in the one "
            "function that training uses."
        ),
    )


def _put_back(run: Run, seen: PutBack) -> Finding:
    """Answers that are good again once one step of the preparation is taken back."""
    reference, before, after = seen.scores
    order = ", ".join(map(str, seen.order))
    what = f"their channels in the order {order}" if order else seen.change
    text = (
        f"accuracy {before:.2f} over {seen.rows} pictures as they were given, {after:.2f} with "
        f"{what}; {reference:.2f} in the other evaluation ({seen.num_tried} changes tried)"
    )
    reading = compared(text, after - before, limits.REGAINED, expected=0, signal="populations")
    return finding(
        "Pictures are given as the model was not trained on them",
        where(run, seen.sites),
        (reading,),
        Fix(
            f"Before anything else is done to them: {what} (BGR to RGB: frame[..., ::-1]). Best in "
            "the one function that training uses."
            if order
            else f"Take back what is done otherwise than in training: {what}. Best in one function "
            "that both use."
        ),
    )


def _differs(pair: ServedPair) -> bool:
    if not limits.OTHER_ANSWERS.reached_by(pair.apart):
        return False
    is_worse = limits.COPY_LOSS.reached_by(pair.lower)
    # a copy in training mode that is no worse takes its statistics of the new rows on purpose
    adapts = pair.is_training and pair.lower is not None
    if pair.copy is not None and _has_same_weights(pair.copy) and not adapts:
        return True
    return is_worse


def _must_agree(pair: ServedPair) -> bool:
    """The same rows through the same parameters: what is lost then, a copy has lost by itself.
    Statistics that were taken anew on purpose would not be worse.
    """
    if pair.copy is None or pair.num_prepared or pair.is_training:
        return False
    lost = limits.COPY_LOSS.reached_by(pair.lower)
    return lost and limits.SAME_WEIGHTS.kept_by(pair.copy.distance)


def _has_same_weights(copy: Likeness) -> bool:
    same = limits.SAME_WEIGHTS.kept_by(copy.distance)
    return same and (copy.buffers is None or limits.SAME_BUFFERS.kept_by(copy.buffers))


def _parted(run: Run, pair: ServedPair) -> Finding:
    copy = pair.copy
    who = f"a {copy.kind} {copy.cls}" if copy else "the same model"
    if pair.kind == "classes":
        text = f"{pair.apart:.0%} of {pair.rows} rows get another class from {who}"
    else:
        text = f"over {pair.rows} rows the answers of {who} are {pair.apart:.0%} of their "
        text += "spread away"
    evidence = [
        exact(text, pair.apart, signal="populations")
        if _must_agree(pair)
        else compared(text, pair.apart, limits.OTHER_ANSWERS, expected=0, signal="populations")
    ]
    evidence += _scores(pair)
    evidence += _prepared(pair)
    if copy and copy.distance is not None:
        weights = f"its parameters are {copy.distance:.2g} of their size away"
        if copy.buffers is not None:
            weights += f", its buffers {copy.buffers:.2g}"
        evidence.append(context(weights, signal="populations", value=copy.distance, expected=0))
    if pair.is_training:
        evidence.append(context("it is in training mode, the trained model was not"))
    title = (
        "Rows prepared in another way are answered otherwise"
        if pair.num_prepared and not copy
        else "The copy that serves does not answer as the trained model does"
    )
    return finding(title, where(run, pair.sites), evidence, _fix(pair))


def _scores(pair: ServedPair) -> Iterator[Evidence]:
    first, second = pair.scores
    if pair.lower is not None:
        name = "accuracy" if pair.kind == "classes" else "mean distance"
        text = f"{name} {first:.3g} by the trained model, {second:.3g} as served"
        yield context(text, signal="populations", value=second, expected=first)


def _prepared(pair: ServedPair) -> Iterator[Evidence]:
    for c in pair.prepared:
        text = (
            f"input column {c.column}: {c.factor:.3g} times as wide, moved by "
            f"{c.shift:+.2f} spreads ({pair.num_prepared} of {pair.width} columns differ)"
        )
        yield context(text, signal="populations", value=c.factor, expected=1)


def _fix(pair: ServedPair) -> Fix:
    if pair.num_prepared:
        return Fix("Prepare rows in one function, with the statistics of training, in both places.")
    if pair.is_training:
        return Fix("Call .eval() on the copy before it answers.")
    return Fix(
        "Compare the copy with the trained model on fixed rows before it serves, and keep what "
        "parts them out of the export (buffers that were not copied, layers that do not bear the "
        "precision, another state)."
    )
