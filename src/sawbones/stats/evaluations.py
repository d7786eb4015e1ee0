"""Readings of what a run did with its outputs where it wanted no gradients."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from sawbones.schema import Run, Site
from sawbones.schema.evaluation import ModelInput, Node
from sawbones.stats.splits import told_apart

CASTS = (
    "float",
    "double",
    "to",
    "type",
    "int",
    "long",
    "bool",
    "view",
    "reshape",
    "flatten",
    "squeeze",
    "cpu",
    "detach",
    "view_as",
    "clone",
    "half",
)
READS = ("item", "__float__", "__format__", "tolist", "numpy", "__array__")


def consumers(all_nodes: Sequence[Node], of: Node, through: Sequence[str] = CASTS) -> list[Node]:
    """What takes its result, casts and reshapes passed over."""
    found, frontier, seen = [], [of.id], set()
    while frontier:
        number = frontier.pop()
        if number in seen:
            continue
        seen.add(number)
        for node in all_nodes:
            if number in node.sources:
                if node.op in through:
                    frontier.append(node.id)
                else:
                    found.append(node)
    return found


def made_by(all_nodes: Sequence[Node], of: Node, through: Sequence[str] = CASTS) -> list[Node]:
    """What its inputs came from, casts and reshapes passed over."""
    by_id = {n.id: n for n in all_nodes}
    found, frontier, seen = [], list(of.sources), set()
    while frontier:
        number = frontier.pop()
        node = by_id.get(number)
        if node is None or number in seen:
            continue
        seen.add(number)
        if node.op in through:
            frontier += node.sources
        else:
            found.append(node)
    return found


_NUMERAL = re.compile(r"[ \d.+-]+")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.\d+(?:e[-+]?\d+)?(?![\w.])")


def printed_numbers(run: Run, step: int) -> list[tuple[float, float]]:
    """(number, unit of its last digit) of what the script printed after the evaluation of a
    step.
    """
    lines = (text for at, text in run.evaluation.printed if at == step)
    return [number for text in lines for number in _numbers_in(text)]


def numbers_of_the_end(run: Run) -> list[tuple[float, float]]:
    """The same of what is printed after the last step, without lines such as were printed before:
    those tell how it goes, and not what it came to.
    """
    printed = run.evaluation.printed
    before = {_NUMERAL.sub("0", text) for at, text in printed if at < run.num_steps}
    lines = (text for at, text in printed if at >= run.num_steps)
    new = [text for text in lines if _NUMERAL.sub("0", text) not in before]
    return [number for text in new for number in _numbers_in(text)]


def _numbers_in(text: str) -> Iterator[tuple[float, float]]:
    for number in _NUMBER.findall(text):
        digits = len(number.split("e")[0].split(".")[1])
        yield float(number), 10.0**-digits


def model_inputs(run: Run, phase: str) -> Iterator[ModelInput]:
    return (row for row in run.evaluation.inputs if row.phase == phase)


def train_losses_called(run: Run) -> set[str]:
    return {str(e.data.get("fn")) for e in run.of_kind("loss") if e.phase == "train"}


def validation_curve(
    run: Run,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], Site | None]:
    """(steps, mean loss of each evaluation, where it was computed), over the loss that training
    uses too.

    Where an evaluation goes over samples of training and over others, the others alone count. A
    test set that is read once, after the last step, is no part of the evaluation before it.
    """
    wanted = train_losses_called(run)
    by_step: dict[int, list[float]] = {}
    site = None
    for event in run.of_kind("loss"):
        value = event.data.get("value")
        if (
            event.phase == "eval"
            and event.data.get("fn") in wanted
            and isinstance(value, (int, float))
        ):
            by_step.setdefault(event.step, []).append(float(value))
            site = site or event.site
    by_step = _without_last_test(run, by_step)
    by_step = _held_out(run, by_step) or by_step
    steps = sorted(by_step)
    return (
        np.array(steps, np.int64),
        np.array([np.mean(by_step[s]) for s in steps], np.float64),
        site,
    )


def _without_last_test(run: Run, by_step: dict[int, list[float]]) -> dict[int, list[float]]:
    """Without the losses of the last evaluation whose loader no earlier one has read."""
    last = max(by_step, default=0)
    evaluated = told_apart(run)[1]
    known = {b.source for b in evaluated if b.step < last}
    marks = [b.source in known for b in evaluated if b.step == last]
    if len(marks) != len(by_step.get(last, ())) or not any(marks):
        return by_step
    return by_step | {last: [v for v, mark in zip(by_step[last], marks, strict=True) if mark]}


def _held_out(run: Run, by_step: Mapping[int, Sequence[float]]) -> dict[int, list[float]] | None:
    """The losses of batches that were never trained on, where every evaluation has some of them and
    some that were.
    """
    fresh = fresh_batches(run)
    found: dict[int, list[float]] = {}
    for step, values in by_step.items():
        marks = fresh.get(step, [])
        if len(marks) != len(values) or None in marks or all(marks) or not any(marks):
            return None
        found[step] = [v for v, mark in zip(values, marks, strict=True) if mark]
    return found


def fresh_batches(run: Run) -> dict[int, list[bool | None]]:
    """For every evaluation, batch by batch: whether it holds no sample of training, or hardly any
    other; None where neither.
    """
    trained, evaluated = told_apart(run)
    known = {f for batch in trained for f in batch.fingerprints}
    found: dict[int, list[bool | None]] = {}
    for batch in evaluated:
        share = sum(f in known for f in batch.fingerprints) / max(len(batch.fingerprints), 1)
        mark = None if not batch.fingerprints or 0.05 < share < 0.6 else share <= 0.05
        found.setdefault(batch.step, []).append(mark)
    return found


def hits(run: Run) -> tuple[float, float, int] | None:
    """(share of answers that are right, share of the commonest answer, number) where evaluations
    compare guesses with labels.
    """
    for node in _compared_with_labels(run):
        return node.result.mean, _commonest(node), node.result.num
    return None


def latest_hits(run: Run, since: float) -> tuple[float, float, int] | None:
    """The same of the evaluations since this step."""
    for node in _compared_with_labels(run):
        late = [(right, of) for step, right, of in node.hits if step >= since]
        number = sum(of for _, of in late)
        if number:
            return sum(right for right, _ in late) / number, _commonest(node), number
    return None


def _compared_with_labels(run: Run) -> Iterator[Node]:
    """What answers are compared with is asked for, wherever it came from."""
    for node in run.evaluation.nodes:
        pair = len(node.roles) == 2 and node.roles.count("output") == 1
        if node.op == "eq" and pair and node.target_counts and node.result.num:
            yield node


def _commonest(node: Node) -> float:
    return max(node.target_counts.values()) / sum(node.target_counts.values())


ERRORS = ("sub", "rsub", "square", "pow", "abs", "mean", "sum", "sqrt", "norm", *CASTS)


def error_curve(run: Run) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], Site | None]:
    """(steps, mean, where it is read off) of an error computed by hand: outputs less targets, with
    nothing but powers and means.
    """
    everything = run.evaluation.nodes
    by_id = {n.id: n for n in everything}
    for node in everything:
        before, frontier = {node.id}, list(node.sources)
        while frontier:
            number = frontier.pop()
            if number in by_id and number not in before:
                before.add(number)
                frontier += by_id[number].sources
        made = [by_id[n] for n in before if n != node.id]
        differs = any("sub" in n.op and "output" in n.roles and len(n.roles) == 2 for n in made)
        if not node.reads or not differs or not all(n.op in ERRORS for n in made):
            continue
        by_step: dict[int, list[float]] = {}
        for step, value, _ in node.reads:
            by_step.setdefault(step, []).append(value)
        steps = sorted(by_step)
        return (
            np.array(steps, np.int64),
            np.array([np.mean(by_step[s]) for s in steps], np.float64),
            node.site,
        )
    return np.zeros(0, np.int64), np.zeros(0), None
