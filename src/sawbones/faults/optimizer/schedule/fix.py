"""The length of the schedule as the run takes it, in the unit in which it moves."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, keyword_of, replace
from sawbones.fixing.moves import move
from sawbones.fixing.recipes import Case, Change, Decide
from sawbones.fixing.source import Source, called_name
from sawbones.schema import Event

LENGTHS = ("T_max", "total_steps", "total_iters", "step_size", "num_training_steps")
# Of the classes whose second argument is their length.
SECOND = {"CosineAnnealingLR": "T_max", "StepLR": "step_size"}


def fix(case: Case) -> Iterator[Change | Decide]:
    moves = [e for e in case.run.of_kind("schedule") if not e.data.get("initial")]
    made = next((e for e in case.run.of_kind("schedule") if e.data.get("initial")), None)
    place = _construction(case, made)
    optimizer = case.optimizer()
    stepped = case.use("schedule", "step")
    if stepped is not None and optimizer is not None and 3 * len(moves) <= case.run.num_steps:
        source = stepped.source
        same = source is optimizer.source and (
            source.function_of(stepped.call) is source.function_of(optimizer.call)
        )
        if same:
            yield Change(
                "Move the scheduler after every optimizer step.",
                move(source, stepped.statement, optimizer.statement, behind=True),
            )
    if place is not None:
        yield from _lengths(case, *place, len(moves))
    yield Decide(
        "Decide in which unit the schedule counts, and give it the length that the run has in that "
        "unit: optimizer steps where step() stands behind optimizer.step() (a smooth curve), epochs "
        "where it stands at the end of an epoch (fewer, larger moves)."
    )


def _construction(case: Case, made: Event | None) -> tuple[Source, ast.Call] | None:
    if made is None or made.site is None:
        return None
    source = case.source(made.site)
    calls = source.calls_at(made.site.line, str(made.data.get("cls"))) if source else []
    return (source, calls[0]) if source is not None and calls else None


def _lengths(case: Case, source: Source, call: ast.Call, moves: int) -> Iterator[Change]:
    mode = keyword_of(call, "mode")
    if isinstance(mode, ast.Constant) and mode.value == "max":
        yield Change('Wait for a loss to fall: mode="min".', (replace(source, mode, '"min"'),))
    for name in LENGTHS:
        place = 1 if SECOND.get(called_name(call)) == name else -1
        given = keyword_of(call, name, place)
        if given is None or moves < 2:
            continue
        edit: Edit = replace(source, given, str(moves))
        yield Change(
            f"Give the schedule the {moves} moves that it makes: {name}={moves}.",
            (edit,),
            unsafe=f"{moves} is the length of this run: write it in terms of its epochs",
        )
