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
A script that seeds nothing, itself or by a seed that it hands to a library, does not promise to
repeat: mentioned at most. A difference in the last bits of the loss, with equal batches, is the
order of floating-point sums in threads and is mentioned at most. Two runs of different length are
compared only as far as both went.

## References
PyTorch's notes on reproducibility list the streams to seed; string hashes are salted per process
since Python 3.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.schema import Evidence, Finding, Fix, Run, Site

NEEDS = ("twin_run",)
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
LAST_BITS = 1e-5

_NOUNS = {
    "batch_order": "the order of the samples",
    "batch_values": "the values of the batches",
    "loss": "the loss",
    "ending": "how the run ends",
}


def check(run: Run) -> Iterator[Finding]:
    twin: Mapping[str, Any] = run.facts["twin_run"]
    differs = twin.get("differs")
    if not differs:
        return
    what = str(differs["what"])
    cause, places, fix = _cause(run, twin, what)
    seeded = _seeded_on_purpose(run)
    bits = what == "loss" and float(differs.get("relative", 1.0)) < LAST_BITS
    sure = bool(seeded) and not bits and what != "ending"
    place = differs.get("site")
    if place and Site(**place) not in places:
        places = (*places, Site(**place))
    noun = _NOUNS.get(what, what)
    values = (
        f" ({differs['first']:.9g} and {differs['second']:.9g})"
        if isinstance(differs.get("first"), float)
        else ""
    )
    promised = (
        f"the script seeds {', '.join(sorted(seeded))}"
        if seeded
        else "the script seeds no global stream"
    )
    yield Finding(
        "loop.nondeterminism",
        "proven" if sure else "suspected",
        0.95 if sure else 0.4,
        f"Two runs with one seed differ in {noun}: {cause}",
        places[:6],
        (
            Evidence(
                f"first difference at step {differs.get('step', 0)}: {noun}{values}; {promised}",
                "twin_run",
                (int(differs.get("step", 0)),),
                differs.get("first") if isinstance(differs.get("first"), float) else None,
                differs.get("second") if isinstance(differs.get("second"), float) else None,
            ),
            Evidence(
                f"two runs of the same script, compared over {twin.get('steps', 0)} steps",
                "twin_run",
            ),
        ),
        fix,
    )


def _seeded_on_purpose(run: Run) -> set[str]:
    """Global streams that a line of the user's own seeds, or a library with the number that the
    user gave it as the seed.

    Libraries that seed on their own account promise nothing."""
    lines = {(r["file"], r["line"]) for r in _calls(run, "seed")}
    events = [
        e for e in run.of_kind("seed") if e.site is not None and (e.site.file, e.site.line) in lines
    ]
    named = [r for r in run.facts.get("numbers") or () if "seed" in str(r.get("name", "")).lower()]
    handed = {float(r["value"]) for r in named if r.get("value") is not None}
    events += [e for e in run.of_kind("seed") if e.data.get("value") in handed]
    return {str(e.data.get("library")) for e in events} - {"cuda"}


def _calls(run: Run, *kinds: str) -> list[Mapping[str, Any]]:
    return [r for r in run.facts.get("calls", ()) if r["kind"] in kinds]


def _site(row: Mapping[str, Any]) -> Site:
    return Site(row["file"], row["line"], row["function"], row["code"])


def _last(row: Mapping[str, Any]) -> str:
    return str(row["call"]).rsplit(".", 1)[-1]


def _cause(run: Run, twin: Mapping[str, Any], what: str) -> tuple[str, tuple[Site, ...], Fix]:
    """(in words, where, what to do), from the most to the least specific reading."""
    seeds = _calls(run, "seed")
    seed_lines = tuple(dict.fromkeys(_site(r) for r in seeds))
    changed = twin.get("seed_differs")
    if isinstance(changed, Mapping):
        place = (Site(**changed["site"]),) if changed.get("site") else seed_lines
        words = f"{changed['library']} is seeded with another value each time"
        return words, place, Fix("Seed with a fixed number, not with the clock or the process.")
    draws = _calls(run, "draw", "order", "seed")
    nameless = [r for r in draws if _last(r) in MAKERS and not r["num_args"]]
    entropy = [r for r in draws if _last(r) in ENTROPY]
    clock = [
        r
        for r in draws
        if _last(r) in CLOCK and any(s["line"] == r["line"] and s is not r for s in seeds)
    ]
    clock += [r for r in draws if _last(r) in CLOCK and any(m in r["code"] for m in MAKERS)]
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
            return f"{words} ({rows[0]['call']})", tuple(map(_site, rows)), Fix(advice)
    seeded = {str(e.data.get("library")) for e in run.of_kind("seed")}
    if "torch" not in seeded or (
        what == "loss" and twin["differs"].get("step") == 0 and _seeded_late(run)
    ):
        return _weights(run, seeded, seed_lines)
    used = run.facts.get("streams_used", {})
    for library, prefixes in (("random", ("random.",)), ("numpy", ("np.random.", "numpy.random."))):
        calls = [
            r
            for r in _calls(run, "draw", "order")
            if str(r["call"]).startswith(prefixes) or "." not in str(r["call"])
        ]
        calls = [
            r
            for r in calls
            if _last(r) not in HASHED | CLOCK | LISTED | MAKERS | {"sorted", "reversed"}
        ]
        calls.sort(key=lambda r: not str(r["call"]).startswith(prefixes))
        if library not in seeded and used.get(library) and calls:
            near = tuple(s for s in seed_lines if s.file == calls[0]["file"])
            places = (*near[:1], _site(calls[0]), *near[1:2])
            call = "random.seed(0)" if library == "random" else "numpy.random.seed(0)"
            return (
                f"{library} is drawn from and never seeded",
                places,
                Fix(f"Seed it beside the others: {call}.", insert_after=call),
            )
    loose = _without_state(run)
    if "numpy" not in seeded and used.get("numpy") and loose:
        words = (
            "numpy, which is never seeded, is drawn from by a library that was given no "
            "random_state"
        )
        return words, loose, Fix("Give the call a random_state, or seed NumPy.")
    listed = [r for r in _calls(run, "draw") if _last(r) in LISTED]
    hashed = [r for r in _calls(run, "draw") if _last(r) in HASHED]
    if hashed:
        words = "the order of a set or of hashes, which is another one in every process"
        return (
            words,
            tuple(map(_site, hashed)),
            Fix("Sort what comes out of the set before numbering or iterating it."),
        )
    if listed:
        return (
            "the order in which files are listed",
            tuple(map(_site, listed)),
            Fix("Sort the list of files."),
        )
    return (
        "the source draws from a stream that no seed reaches",
        seed_lines,
        Fix("Seed every stream that the script draws from."),
    )


def _without_state(run: Run) -> tuple[Site, ...]:
    """Calls of scikit-learn and pandas that draw from NumPy's global stream when no random_state is
    given.
    """
    rows = [
        r
        for r in run.facts.get("source_lines") or ()
        if r["kind"] == "split" and r.get("name") in SPLITTERS
    ]
    rows += [
        r
        for r in _calls(run, "order")
        if _last(r) == "sample" and not str(r["call"]).startswith("random.")
    ]
    return tuple(dict.fromkeys(_site(r) for r in rows if "random_state" not in r["code"]))


def _seeded_late(run: Run) -> bool:
    """The model is made above the line that seeds torch, in the same function."""
    seeds = [
        e.site
        for e in run.of_kind("seed")
        if e.data.get("library") == "torch" and e.site is not None
    ]
    built = [m.built for m in run.modules if m.built is not None and m.num_params]
    return bool(seeds) and any(
        b.file == seeds[0].file and b.function == seeds[0].function and b.line < seeds[0].line
        for b in built
    )


def _weights(
    run: Run, seeded: set[str], seed_lines: tuple[Site, ...]
) -> tuple[str, tuple[Site, ...], Fix]:
    built = tuple(dict.fromkeys(m.built for m in run.modules if m.built is not None))
    if "torch" not in seeded:
        text, call = "Call torch.manual_seed before the model is made.", "torch.manual_seed(0)"
        advice = Fix(text, insert_after=call) if seed_lines else Fix(text, insert_before=call)
        return "torch is never seeded", (*seed_lines[:1], *built[:1]), advice
    late = tuple(
        e.site
        for e in run.of_kind("seed")
        if e.data.get("library") == "torch" and e.site is not None
    )
    return (
        "torch is seeded after the model is made",
        (*late[:1], *built[:1]),
        Fix("Seed before the model is made."),
    )
