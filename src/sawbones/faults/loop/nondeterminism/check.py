"""Randomness that the seed does not reach: two runs with one seed differ

## What it sees
The script is run twice from the same start, for at most 25 steps, and compared: seeds, batches by
fingerprint, losses bit by bit. The first thing that differs is named. What it comes from is told
apart by what was seeded, by whether the global streams of `random` and NumPy were drawn from, and
by the calls in the source that draw: a generator made without a seed, a library that nobody seeded,
a seed taken from the clock, the order of a set or of hashes.

## Why it matters
A result that can't be repeated can't be debugged, compared with another commit, or resumed exactly.

## Looks like
The script sets a seed, and every run prints other numbers.

## Example
    torch.manual_seed(0)
    rng = numpy.random.default_rng()
    batch = data[rng.permutation(len(data))[:32]]

## Use instead
    torch.manual_seed(0)
    rng = numpy.random.default_rng(0)
    batch = data[rng.permutation(len(data))[:32]]

## Confirm it
The second run is the proof: same script, same machine, same seed, other numbers.

## False alarms
A script that hands no seed to anything, neither to a library's function nor to the streams
themselves, does not promise to repeat: mentioned at most. One that seeds NumPy or `random` alone
promises the same data and split, not the same weights: that torch was never seeded is mentioned at
most. A difference in the last bits of the loss, with equal batches, is the
order of floating-point sums in threads and is mentioned at most. Two runs of different length are
compared only as far as both went.

## References
PyTorch's notes on reproducibility list the streams to seed; string hashes are salted per process
since Python 3.3.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import context, exact, finding
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Finding, Fix, Run, Site, SourceCall
from sawbones.schema.one_off import TwinRun
from sawbones.trace.locate import locate

NEEDS = ("twin_run",)
USES = ("source_calls", "streams_used", "source_lines")
EXPLAINS = ("pipeline.worker-seed",)
EXPERIMENT = None

# Makers of generators that take the seed as their argument: without one they ask the operating
# system.
MAKERS = {"default_rng", "RandomState", "Random", "PCG64", "SeedSequence", "Philox", "MT19937"}
ENTROPY = {
    "urandom",
    "SystemRandom",
    "uuid4",
    "token_bytes",
    "getrandbits",
    "getpid",
    "token_hex",
    "randbits",
}
CLOCK = {"time", "time_ns", "perf_counter", "monotonic", "now"}
HASHED = {"set", "frozenset", "hash"}
LISTED = {"listdir", "glob", "iterdir", "scandir"}
SPLITTERS = {"train_test_split", "ShuffleSplit", "StratifiedShuffleSplit", "KFold"}
NOT_DRAWS = HASHED | CLOCK | LISTED | MAKERS | {"sorted", "reversed"}
NOUNS = {
    "batch_order": "the order of the samples",
    "batch_values": "the values of the batches",
    "loss": "the loss",
    "ending": "how the run ends",
}
TORCH_UNSEEDED = "torch is never seeded"
Cause = tuple[str, tuple[Site, ...], Fix]  # in words, where, what to do


def check(run: Run) -> Iterator[Finding]:
    twin = run.twin_run
    differs = twin.differs if twin is not None else None
    if twin is None or differs is None:
        return
    what, step = differs.what, differs.step
    cause, where, fix = _cause(run, twin, what)
    seeded = _seeded_on_purpose(run)
    last_bits = what == "loss" and limits.RUNS_DIFFER.undercut_by(differs.relative)
    promises = bool(seeded) and cause != TORCH_UNSEEDED
    noun = NOUNS.get(what, what)
    promised = (
        f"the script seeds {', '.join(sorted(seeded))}"
        if seeded
        else "no line of the script gives a seed to a global stream"
    )
    first: float = 1
    second: float = 0
    values = ""
    if isinstance(differs.first, float) and isinstance(differs.second, float):
        first, second = differs.first, differs.second
        values = f" ({first:.9g} and {second:.9g})"
    yield finding(
        f"Two runs with one seed differ in {noun}: {cause}",
        locate(*where, differs)[:6],
        (
            exact(
                f"first difference at step {step}: {noun}{values}; {promised}",
                first,
                expected=second,
                signal="twin_run",
                steps=(step,),
            ),
            context(
                f"two runs of the same script, compared over {twin.steps} steps",
                signal="twin_run",
            ),
        ),
        fix,
        at_most="proven" if promises and not last_bits and what != "ending" else "suspected",
    )


def _seeded_on_purpose(run: Run) -> set[str]:
    """Global streams that were seeded with a value that a line of the user's own gave.

    Libraries that seed on their own account promise nothing."""
    given = [e for e in run.of_kind("seed") if e.data.get("handed")]
    return {str(e.data.get("library")) for e in given} - {"cuda"}


def _calls(run: Run, *kinds: str) -> list[SourceCall]:
    return [call for call in run.source_calls if call.kind in kinds]


def _cause(run: Run, twin: TwinRun, what: str) -> Cause:
    """From the most to the least specific reading."""
    seed_lines = locate(*_calls(run, "seed"))
    seeded = {str(e.data.get("library")) for e in run.of_kind("seed")}
    changed = twin.seed_differs
    if changed is not None:
        words = f"{changed.library} is seeded with another value each time"
        fix = Fix("Seed with a fixed number, not with the clock or the process.")
        return words, locate(changed) or seed_lines, fix
    first_loss = what == "loss" and twin.differs is not None and twin.differs.step == 0
    return (
        _generator(run)
        or _weights(run, seeded, seed_lines, first_loss)
        or _stream(run, seeded, seed_lines)
        or _library_without_state(run, seeded)
        or _unordered(run)
        or (
            "the source draws from a stream that no seed reaches",
            seed_lines,
            Fix("Seed every stream that the script draws from."),
        )
    )


def _generator(run: Run) -> Cause | None:
    """A generator of its own without a seed, or with one that is another each time."""
    seeds, draws = _calls(run, "seed"), _calls(run, "draw", "order", "seed")
    nameless = [r for r in draws if r.function in MAKERS and not r.num_args]
    entropy = [r for r in draws if r.function in ENTROPY]
    timed = [r for r in draws if r.function in CLOCK]
    clock = [r for r in timed if any(s.site.line == r.site.line and s != r for s in seeds)]
    clock += [r for r in timed if any(m in r.site.code for m in MAKERS)]
    for rows, words, advice in (
        (nameless, "a generator is made without a seed", "Give the generator a fixed seed."),
        (
            entropy,
            "a seed comes from the operating system",
            "Use a fixed seed instead of one from the operating system.",
        ),
        (clock, "a seed comes from the clock", "Use a fixed seed instead of the clock."),
    ):
        if rows:
            return f"{words} ({rows[0].name})", tuple(r.site for r in rows), Fix(advice)
    return None


def _weights(
    run: Run, seeded: set[str], seed_lines: tuple[Site, ...], first_loss: bool
) -> Cause | None:
    """The model is drawn from an unseeded torch, or above the line that seeds it."""
    built = locate(*(m.built for m in run.modules))[:1]
    if "torch" not in seeded:
        advice = Fix("Call torch.manual_seed before the model is made.")
        return TORCH_UNSEEDED, (*seed_lines[:1], *built), advice
    torch_seeds = [e.site for e in run.of_kind("seed") if e.data.get("library") == "torch"]
    seed = next((site for site in torch_seeds if site is not None), None)
    late = seed is not None and any(
        m.built.file == seed.file and m.built.function == seed.function and m.built.line < seed.line
        for m in run.modules
        if m.built is not None and m.num_params
    )
    if not first_loss or not late:
        return None
    words = "torch is seeded after the model is made"
    return words, (*locate(seed), *built), Fix("Seed before the model is made.")


def _stream(run: Run, seeded: set[str], seed_lines: tuple[Site, ...]) -> Cause | None:
    used = run.streams_used
    for library, prefixes in (("random", ("random.",)), ("numpy", ("np.random.", "numpy.random."))):
        calls = [
            r
            for r in _calls(run, "draw", "order")
            if (r.name.startswith(prefixes) or "." not in r.name) and r.function not in NOT_DRAWS
        ]
        calls.sort(key=lambda r: not r.name.startswith(prefixes))
        if library not in seeded and used.get(library) and calls:
            near = tuple(s for s in seed_lines if s.file == calls[0].site.file)
            call = "random.seed(0)" if library == "random" else "numpy.random.seed(0)"
            return (
                f"{library} is drawn from and never seeded",
                (*near[:1], calls[0].site, *near[1:2]),
                Fix(f"Seed it beside the others: {call}."),
            )
    return None


def _library_without_state(run: Run, seeded: set[str]) -> Cause | None:
    """Calls of scikit-learn and pandas that draw from NumPy's global stream when no random_state is
    given.
    """
    lines = [r.site for r in run.source_lines if r.kind == "split" and r.name in SPLITTERS]
    lines += [
        call.site
        for call in _calls(run, "order")
        if call.function == "sample" and not call.name.startswith("random.")
    ]
    loose = locate(*(site for site in lines if "random_state" not in site.code))
    if not loose or "numpy" in seeded or not run.streams_used.get("numpy"):
        return None
    words = (
        "numpy, which is never seeded, is drawn from by a library that was given no random_state"
    )
    return words, loose, Fix("Give the call a random_state, or seed NumPy.")


def _unordered(run: Run) -> Cause | None:
    """An order that nothing fixes: of hashes, or of a folder's files."""
    draws = _calls(run, "draw")
    for names, words, advice in (
        (
            HASHED,
            "the order of a set or of hashes, which is another one in every process",
            "Sort what comes out of the set before numbering or iterating it.",
        ),
        (LISTED, "the order in which files are listed", "Sort the list of files."),
    ):
        rows = [r for r in draws if r.function in names]
        if rows:
            return words, tuple(r.site for r in rows), Fix(advice)
    return None
