"""Seed every worker by its own number, which torch has drawn for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, above, after, keyword_of, replace, set_keyword
from sawbones.fixing.names import bound_in, root_names, spelled, value_of
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name
from sawbones.schema import Site

SUMMARY = "Seed every worker differently: torch.initial_seed() is another one in each."
MAKERS = ("default_rng", "RandomState", "Random", "Generator")
SEEDING = (*MAKERS, "seed", "manual_seed", "set_seed", "seed_everything", "seed_all")


def fix(case: Case) -> Iterator[Change]:
    code = case.run.data_code
    streams = case.run.redraw is not None and case.run.redraw.stream
    reading = _constant_seed if streams else _own_generator
    for lines, recipe in ((code.seeds, _constant_seed), (code.reads, reading)):
        source = case.source(Site(lines[0], lines[1], "", "")) if lines is not None else None
        if source is not None and lines is not None:
            yield from recipe(case, source, lines[1])


def _constant_seed(case: Case, source: Source, line: int) -> Iterator[Change]:
    """Streams that the function which starts a worker seeds with what is the same in each."""
    scope = next((n for n in source.nodes_at(line) if isinstance(n, ast.FunctionDef)), None)
    seed, imports = spelled(source, "torch.initial_seed")
    edits = [
        replace(source, call.args[0], f"{seed}() % 2**32")
        for call in ast.walk(scope or ast.Module([], []))
        if isinstance(call, ast.Call) and called_name(call) in SEEDING and len(call.args) == 1
        if scope is not None and _is_fixed(source, scope, call.args[0])
    ]
    if edits:
        yield Change(SUMMARY, (*imports, *edits))


def _is_fixed(source: Source, scope: ast.FunctionDef, given: ast.expr) -> bool:
    value = value_of(source, given)
    called = any(isinstance(node, ast.Call) for node in ast.walk(value))
    return not called and not root_names(value) & (bound_in(scope) - {"self"})


def _own_generator(case: Case, source: Source, line: int) -> Iterator[Change]:
    """A generator that the data set holds: every worker gets a copy of it, and needs a new one."""
    owner = next((n for n in source.nodes_at(line) if isinstance(n, ast.ClassDef)), None)
    made = [
        node
        for node in (ast.walk(owner) if owner is not None else ())
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and called_name(node.value) in MAKERS
        and isinstance(node.targets[0], ast.Attribute)
        and root_names(node.targets[0]) == {"self"}
    ]
    loaders = [loader for loader in case.run.loaders if loader.num_workers]
    for loader in loaders[:1]:
        there = case.source(loader.site)
        calls = there.calls_at(loader.site.line, "DataLoader") if there and loader.site else []
        if there is not source or not calls or not made:
            return
        info, imports = spelled(source, "torch.utils.data.get_worker_info")
        seed, more = spelled(source, "torch.initial_seed")
        lines = []
        for node in made:
            assert isinstance(node.value, ast.Call)
            attribute = source.text_of(node.targets[0]).partition(".")[2]
            maker = source.text_of(node.value.func)
            lines.append(f"{info}().dataset.{attribute} = {maker}({seed}() % 2**32)")
        yield from _in_worker(source, calls[0], lines, (*imports, *more))


def _in_worker(
    source: Source, call: ast.Call, lines: list[str], imports: tuple[Edit, ...]
) -> Iterator[Change]:
    """At the end of the function that starts workers, or in a new one."""
    given = keyword_of(call, "worker_init_fn")
    if given is None:
        body = "\n".join(f"    {line}" for line in lines)
        text = f"def seed_worker(number):\n{body}"
        edits = (
            above(source, source.outermost(call), text),
            set_keyword(source, call, "worker_init_fn", "seed_worker"),
        )
        yield Change(SUMMARY, (*imports, *edits))
    for function in source.tree.body:
        if not isinstance(function, ast.FunctionDef) or not isinstance(given, ast.Name):
            continue
        if function.name == given.id and not isinstance(function.body[-1], ast.Return):
            edit = after(source, function.body[-1], "\n".join(lines))
            yield Change(SUMMARY, (*imports, edit))
