"""A fixed seed, or a fixed order, in the place of one that is another in every process."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import add_argument, after, keyword_of, replace, set_keyword
from sawbones.fixing.moves import covers, move
from sawbones.fixing.names import spelled
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name
from sawbones.schema import Site

SEEDS = {"torch": "torch.manual_seed", "random": "random.seed", "numpy": "numpy.random.seed"}
MAKERS = ("default_rng", "Random", "RandomState", "PCG64", "SeedSequence", "Philox", "MT19937")
SEEDING = (*MAKERS, "seed", "manual_seed", "seed_everything", "set_seed", "manual_seed_all")
OUTSIDE = (
    *("time", "time_ns", "perf_counter", "monotonic", "now", "urandom", "uuid4", "token_bytes"),
    *("getrandbits", "getpid", "token_hex", "randbits"),
)
LISTED = ("listdir", "glob", "rglob", "iterdir", "scandir")
DRAWN_BY_NUMPY = (
    *("train_test_split", "ShuffleSplit", "StratifiedShuffleSplit", "KFold", "sample"),
)


def fix(case: Case) -> Iterator[Change]:
    seen = set(case.finding.where)
    for source, site in case.places():
        yield from _seeded(source, site)
        yield from _ordered(source, site)
        yield from _earlier(case, source, site)
    for event in case.run.of_kind("seed"):
        there = case.source(event.site)
        if there is not None and event.site is not None and event.site not in seen:
            seen.add(event.site)
            yield from _beside(case, there, event.site)
    for source, site in case.places():
        yield from _beside(case, source, site)


def _seeded(source: Source, site: Site) -> Iterator[Change]:
    """A number where a generator gets none, or one from the clock or the system."""
    for call in source.calls_at(site.line, *MAKERS):
        if not call.args and not call.keywords:
            yield Change("Give the generator a fixed seed.", (add_argument(source, call, "0"),))
    summary = "Use a fixed seed."
    for call in source.calls_at(site.line, *SEEDING):
        if call.args and _from_outside(call.args[0]):
            yield Change(summary, (replace(source, call.args[0], "0"),))
            return
    statement = source.statement_at(site.line)
    if isinstance(statement, ast.Assign) and _from_outside(statement.value):
        yield Change(summary, (replace(source, statement.value, "0"),))
    for call in source.calls_at(site.line, *DRAWN_BY_NUMPY):
        if keyword_of(call, "random_state") is None:
            edit = set_keyword(source, call, "random_state", "0")
            yield Change("Give the call a random_state.", (edit,))


def _from_outside(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and called_name(n) in OUTSIDE for n in ast.walk(node))


def _ordered(source: Source, site: Site) -> Iterator[Change]:
    """What comes out of a set or of a folder is sorted; a hash of text that is the same for all."""
    for call in source.calls_at(site.line, "hash"):
        if len(call.args) == 1:
            function, imports = spelled(source, "zlib.crc32")
            given = source.text_of(call.args[0])
            text = given if isinstance(call.args[0], ast.JoinedStr) else f"repr({given})"
            edit = replace(source, call, f"{function}({text}.encode())")
            yield Change("Hash by a function without a salt.", (*imports, edit))
    for node in source.nodes_at(site.line):
        named = isinstance(node, ast.Call) and called_name(node) in ("set", "frozenset", *LISTED)
        parent = source.parents.get(node)
        done = isinstance(parent, ast.Call) and called_name(parent) == "sorted"
        if done or not (named or isinstance(node, (ast.Set, ast.SetComp))):
            continue
        assert isinstance(node, ast.expr)
        # list(set(words)) needs no second list.
        outer = isinstance(parent, ast.Call) and called_name(parent) in ("list", "tuple")
        whole = parent if outer and isinstance(parent, ast.Call) else node
        edit = replace(source, whole, f"sorted({source.text_of(node)})")
        yield Change("Sort what has no order of its own.", (edit,))


def _earlier(case: Case, source: Source, site: Site) -> Iterator[Change]:
    """A seed that comes after the model was made goes in front of it."""
    seeding = source.statement_at(site.line)
    if seeding is None or not any(source.calls_at(site.line, *SEEDING)):
        return
    for other in case.finding.where:
        for statement in source.block(seeding):
            built = other.file == source.file and covers(statement, other.line)
            if built and statement.lineno < seeding.lineno:
                moved = move(source, seeding, statement, behind=False)
                yield Change("Seed before the model is made.", moved)
                return


def _beside(case: Case, source: Source, site: Site) -> Iterator[Change]:
    """Streams that nothing seeds, beside those that are."""
    seeded = {str(e.data.get("library")) for e in case.run.of_kind("seed")}
    used = case.run.streams_used
    wanted = [name for name in SEEDS if name not in seeded and (name == "torch" or used.get(name))]
    for call in source.calls_at(site.line, *SEEDING):
        statement = source.statement(call)
        if not isinstance(statement, ast.Expr) or statement.value is not call:
            continue
        value = source.text_of(call.args[0]) if call.args else "0"
        for name in wanted:
            function, imports = spelled(source, SEEDS[name])
            line = f"{function}({value})"
            yield Change(
                f"Seed {name} beside the others: {line}.",
                (*imports, after(source, statement, line)),
            )
