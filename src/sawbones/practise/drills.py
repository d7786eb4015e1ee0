"""Drills: questions, curves to be named and numbers to be worked out in the head; what was missed
comes first the next time.
"""

from __future__ import annotations

import json
import math
import random
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from sawbones.lookup.curves import NAMES, blocks
from sawbones.symptoms import all_symptoms

KINDS = ("questions", "curves", "numbers")
NAMED_WITHIN = 10.0  # seconds, of a curve
BLANK = " "
_WIDE = 1000  # times the lowest value


@dataclass(frozen=True)
class Card:
    """What is asked, the answer, and more to read behind it."""

    id: str
    ask: str
    answer: str
    more: str = ""
    seconds: float = math.inf  # an answer that takes longer has not been recognised


def is_known(card: Card, said_right: bool, seconds: float) -> bool:
    return said_right and seconds <= card.seconds


def cards(kind: str, seed: int) -> list[Card]:
    makers = {"questions": _questions, "curves": _curves, "numbers": _numbers}
    return list(makers[kind](random.Random(seed)))


def in_order(deck: Sequence[Card], history: Iterable[dict[str, Any]], seed: int) -> list[Card]:
    """Missed the last time first, then those never asked, then the known ones, longest ago first."""
    last = {row["card"]: (number, row["right"]) for number, row in enumerate(history)}
    rng = random.Random(seed)
    shuffled = rng.sample(deck, len(deck))

    def place(card: Card) -> tuple[int, int]:
        number, right = last.get(card.id, (0, None))
        return ({False: 0, None: 1, True: 2}[right], number)

    return sorted(shuffled, key=place)


@cache
def questions() -> dict[str, list[dict[str, str]]]:
    """By layer, from one file each."""
    found = {}
    for file in sorted(files("sawbones.practise").joinpath("questions").iterdir(), key=str):
        found[Path(file.name).stem] = tomllib.loads(file.read_text(encoding="utf-8"))["question"]
    return found


def _questions(rng: random.Random) -> Iterable[Card]:
    for layer, rows in questions().items():
        for row in rows:
            more = f"Not: {row['not']}\nSee it: {row['command']}"
            yield Card(row["ask"], f"[{layer}] {row['ask']}", row["answer"], more)


@cache
def recorded_curves() -> list[dict[str, Any]]:
    """One symptom each, as benchmarks/recorded_curves.py recorded them from the lab."""
    text = files("sawbones.practise").joinpath("recorded_curves.json").read_text(encoding="utf-8")
    return list(json.loads(text))


def _curves(rng: random.Random) -> Iterable[Card]:
    titles = {
        watched.symptom: watched.page.strip().partition("\n")[0] for watched in all_symptoms()
    }
    for row in recorded_curves():
        ask = f"Which symptom is this, in {row['steps']} steps?\n{drawn(row)}"
        answer = f"{row['symptom']}: {titles[row['symptom']]}."
        more = f"Recorded from {row['fault']}. Read: sawbones explain {row['symptom']}"
        yield Card(row["script"], ask, answer, more, NAMED_WITHIN)


def drawn(row: dict[str, Any]) -> str:
    """A recorded run as lines of blocks with their range, evaluations where they fell."""
    training: list[float | None] = row["training"]
    width, steps = len(training), max(1, row["steps"])
    evaluation: list[float | None] = [None] * width
    for step, value in row["evaluation"]:
        evaluation[min(width - 1, step * width // steps)] = value
    curves = [training, evaluation] if row["evaluation"] else [training]
    known = [value for curve in curves for value in curve if value is not None]
    lowest, highest = min(known), max(known)
    # More than fills a terminal's eight heights: the whole range in its logarithm.
    wide = lowest > 0 and highest > _WIDE * lowest
    scaled = math.log if wide else float
    lines = []
    for name, curve in zip(NAMES, curves, strict=False):
        places = [BLANK if v is None else _block(scaled(v), scaled(lowest), scaled(highest))
                  for v in curve]  # fmt: skip
        gone = curve is training and None in training
        lines.append(f"    {name}  {''.join(places).rstrip()}{' NaN' if gone else ''}")
    scale = ", logarithmic" if wide else ""
    return "\n".join([*lines, f"    from {lowest:.3g} to {highest:.3g}{scale}"])


def _block(value: float, lowest: float, highest: float) -> str:
    return blocks([value], lowest, highest)


def _numbers(rng: random.Random) -> Iterable[Card]:
    classes = rng.choice((2, 10, 100, 1000, 32000))
    yield Card(
        "initial-loss",
        f"Cross-entropy at the start, {classes} classes, nothing learned?",
        f"log {classes} = {math.log(classes):.2f}",
    )
    rate = rng.choice((0.01, 0.05, 0.1))
    entropy = -rate * math.log(rate) - (1 - rate) * math.log(1 - rate)
    yield Card(
        "constant-answer",
        f"Two classes, one has {rate:.0%} of the labels. The loss of the best constant answer?",
        f"the entropy of the labels, {entropy:.3f}",
    )
    millions = rng.choice((124, 350, 1300, 7000))
    yield Card(
        "adam-memory",
        f"{millions} million parameters, float32, Adam. Memory without activations?",
        f"16 bytes each (weight, gradient, two moments): {millions * 16 / 1000:.1f} GB",
    )
    yield Card(
        "mixed-memory",
        f"{millions} million float32 parameters, Adam, trained under autocast. Memory without activations?",
        f"still 16 bytes each, {millions * 16 / 1000:.1f} GB: autocast casts copies for the "
        "forward pass, weights and moments stay in float32",
    )
    batch, steps, ranks = rng.choice((8, 16)), rng.choice((2, 4, 8)), rng.choice((2, 8))
    yield Card(
        "global-batch",
        f"Batch {batch} per rank, {steps} micro-batches, {ranks} ranks. Samples per update?",
        f"{batch} x {steps} x {ranks} = {batch * steps * ranks}",
    )
    width = rng.choice((512, 768, 1024))
    yield Card(
        "block-parameters",
        f"Parameters of one Transformer block of width {width} (4x feed-forward), without norms?",
        f"12 d² = {12 * width * width / 1e6:.1f} million: 4 d² of attention, 8 d² of feed-forward",
    )
    fan = rng.choice((64, 256, 1024))
    yield Card(
        "kaiming",
        f"Kaiming initialisation for ReLU, {fan} inputs. Standard deviation of the weights?",
        f"the root of 2 / {fan} = {math.sqrt(2 / fan):.3f}",
    )
    length = rng.choice((1024, 2048, 4096))
    yield Card(
        "attention-memory",
        f"Attention weights of one head at length {length} in float32, written out?",
        f"{length}² x 4 bytes = {length * length * 4 / 1e6:.0f} MB per head and example",
    )
    yield Card(
        "clipped-norm",
        "Gradient norm 40, clipped at 1. What are gradients multiplied by?",
        "1 / 40 = 0.025, all of them by the same factor: the direction stays",
    )
    yield Card(
        "float16",
        "The largest finite float16, and the smallest above zero?",
        "65504, and 6e-8 (6e-5 is the smallest normal one)",
    )
