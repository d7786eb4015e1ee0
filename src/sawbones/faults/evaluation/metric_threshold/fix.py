"""Cut logits at 0, which is a probability of one half; predictions along the axis of the classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, replace, set_keyword
from sawbones.fixing.expressions import in_brackets, in_comparison, is_library_call, unwrapped
from sawbones.fixing.names import receiver, spelled
from sawbones.fixing.numbers import literal
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name

LEAVES_TORCH = ("numpy", "cpu", "detach", "tolist")


def fix(case: Case) -> Iterator[Change]:
    known = (e for e in case.finding.evidence if e.value is not None and e.expected is not None)
    seen = next(known, None)
    if seen is None or seen.value is None or seen.expected is None:
        return
    for source, site in case.places():
        if "axis" in case.finding.title:
            yield from _other_axis(source, site.line, int(seen.value), int(seen.expected))
        elif "whole batch" in case.finding.title:
            for call in source.calls_at(site.line, "argmax", "max"):
                place = 1 if is_library_call(source, call) else 0
                edit = set_keyword(source, call, "dim", "1", place)
                yield Change("Take the class of each sample: dim=1.", (edit,))
        elif "differently" in case.finding.title or "compared" in case.finding.title:
            yield from _other_targets(source, site.line, case.finding.title, int(seen.expected))
        elif "rounded" in case.finding.title:
            yield from _rounded(source, site.line)
        elif "positive" in case.finding.title:
            yield from _cut_at(source, site.line, 0.0, "0.5", "Cut the probabilities at 0.5.")
            for call in source.calls_at(site.line, "sigmoid"):
                yield Change("Cut the outputs themselves.", (unwrapped(source, call),))
        elif seen.expected == 0 and seen.value:
            summary = "Cut the logits at 0.0, a probability of one half."
            yield from _cut_at(source, site.line, seen.value, "0.0", summary)


def _cut_at(source: Source, line: int, cut: float, text: str, summary: str) -> Iterator[Change]:
    for node in in_comparison(source, line):
        for part in ast.walk(node.comparators[0]):
            if isinstance(part, ast.expr) and literal(part) == cut:
                yield Change(summary, (replace(source, part, text),))


def _other_axis(source: Source, line: int, used: int, right: int) -> Iterator[Change]:
    """The evidence counts both axes from the first."""
    for call in source.calls_at(line, "argmax", "max"):
        place = 1 if is_library_call(source, call) else 0
        name = "dim" if keyword_of(call, "axis") is None else "axis"
        given = keyword_of(call, name, place)
        if given is None or literal(given) == used or isinstance(given, ast.UnaryOp):
            summary = f"Take the class along its own axis, {right}."
            yield Change(summary, (set_keyword(source, call, name, str(right), place),))


def _other_targets(source: Source, line: int, title: str, lowest: int) -> Iterator[Change]:
    """Labels in the coding, or the guesses in the shape, of the others."""
    for node in in_comparison(source, line):
        guess, label = source.text_of(node.left), in_brackets(source, node.comparators[0])
        if "compared" in title:
            text = f"{in_brackets(source, node.left)}.reshape({label}.shape)"
            yield Change(f"Compare sample by sample: {text}.", (replace(source, node.left, text),))
            continue
        text = f"({label} > 0)" if lowest < 0 else f"{label} - 1"
        summary = f"Compare {guess} with {text}."
        yield Change(summary, (replace(source, node.comparators[0], text),))


def _rounded(source: Source, line: int) -> Iterator[Change]:
    for call in source.calls_at(line, "round"):
        function, imports = spelled(source, "torch.sigmoid")
        given = call.args[0] if is_library_call(source, call) and call.args else None
        if given is None and isinstance(call.func, ast.Attribute):
            given = call.func.value
        while isinstance(given, ast.Call) and called_name(given) in LEAVES_TORCH:
            given = receiver(given)
        if given is not None:
            edit = replace(source, given, f"{function}({source.text_of(given)})")
            yield Change("Round the probabilities, not the logits.", (*imports, edit))
