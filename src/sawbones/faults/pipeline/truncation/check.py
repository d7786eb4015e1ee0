"""Texts cut at a limit in a way that loses their end or their answer

## What it sees
Token rows and targets of up to 60 batches. Lengths pile up at the longest one: at least 8 % of all
rows, three times as many as at the lengths just below. Fires when the rows below end in one and the
same id and those at the limit do not, or when rows at the limit have no target that counts while
the others have, or, with one label per row, when at the end of training rows at the limit are
answered wrong at least four times as often as shorter ones, and 20 points more often. When all rows
have one length, the source cuts at a number that could be it, and inputs say nothing about their
labels (or, in a language model, all begin with one id and end in any), it asks the experiment.

## Why it matters
The model never sees how long texts end, so it does not stop; a cut-off answer leaves a sample that
costs time and teaches nothing.

## Looks like
Loss is fine; generation of long texts rambles on, or long prompts are answered badly.

## Example
    ids = (encode(text) + [EOS])[:max_len]

## Use instead
    ids = encode(text)[: max_len - 1] + [EOS]

## Confirm it
Where shorter rows exist, nothing is left to confirm: lengths, ends and targets are in the record.
Where all rows are of one length, the script runs again with a larger limit: confirmed when rows get
longer and then tell their labels, or end in one id.

## False alarms
Blocks of one length cut from a long text have no shorter rows, and stay of one length with a larger
limit. Texts that are cut and still closed by EOS end alike at every length. An input whose last
token was cut off for the shift is judged by its targets. Texts without any terminator and with all
their targets are not reported, even when they pile up.

## References
Tokenizers with truncation=True that append EOS first; instruction data cut from the right with the
answer at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.data_lines import loader_sites, marked_lines, outside_of_models, sample_rows
from sawbones.stats.failures import numbers_equal
from sawbones.stats.learning import learned
from sawbones.stats.loss_calls import places

NEEDS = ("deep",)
EXPLAINS = ("data.degenerate-samples", "pipeline.special-tokens", "data.labels-misaligned")
EXPERIMENT = None  # but for texts that are all cut, see below
PILED = 0.08


def check(run: Run) -> Iterator[Finding]:
    rows = sample_rows(run)
    if rows is None or rows["batches"] < 5:
        return
    if len(set(rows["lengths"])) < 3:
        yield from _all_cut(run, rows)
        return
    lengths = Counter(rows["lengths"])
    limit = max(lengths)
    at, total = lengths[limit], sum(lengths.values())
    before = [lengths.get(limit - k, 0) for k in range(1, 5)]
    if at < PILED * total or at > 0.97 * total or at < 3 * (sum(before) / len(before)) or at < 20:
        return
    targets = rows.get("targets") or {}
    found = (
        (_lost(targets) or _unclosed(targets))
        if at <= (0.97 if _begin_alike(rows) else 0.9) * total
        else None
    )
    found = found or _unanswerable(rows)
    if found is None:
        return
    text, title, value, expected = found
    cuts = outside_of_models(run, marked_lines(run, "cut", limit))
    named = [s for number in _numbers(run, limit) for s in numbers_equal(run, float(number))]
    yield Finding(
        "pipeline.truncation",
        "likely",
        0.93,
        title,
        places(*cuts[:1], *named[:1], *cuts[1:2], *loader_sites(run)[::-1])[:4],
        (
            Evidence(
                (
                    f"{at} of {total} rows have exactly {limit} tokens, the lengths just "
                    f"below {max(before)} at most"
                ),
                "samples",
                value=at / total,
            ),
            Evidence(text, "samples", value=value, expected=expected),
        ),
        Fix(
            "Cut the part that can be spared (the text before EOS, the beginning of the "
            "prompt) and keep EOS and the answer."
        ),
    )


def _all_cut(run: Run, rows: Mapping[str, Any]) -> Iterator[Finding]:
    """Every text is longer than the limit, and what is left of them says nothing about their
    labels.
    """
    limit, total = max(rows["lengths"]), len(rows["lengths"])
    if (
        total < 100
        or limit < 8
        or rows["lengths"].count(limit) < 0.97 * total
        or run.num_steps < 20
    ):
        return
    evidence = _tells_nothing(run) or _never_closed(rows)
    if evidence is None:
        return
    cuts = [
        s
        for r in run.facts.get("source_lines") or ()
        if r["kind"] == "cut" and (r.get("value") is None or abs(r["value"] - limit) <= 2)
        for s in outside_of_models(run, (Site(r["file"], r["line"], r["function"], r["code"]),))
    ]
    written = [
        r for r in run.facts.get("numbers") or () if r.get("name") and abs(r["value"] - limit) <= 2
    ]
    written.sort(key=lambda r: abs(r["value"] - limit))
    if not cuts or not written:
        return
    table = max(
        (t.num_embeddings for d in run.deep[:1] for t in d.tokens if t.role == "positions"),
        default=0,
    )
    raised = 4 * limit if table <= limit + 2 else min(4 * limit, table)
    numbers = [
        {"file": r["file"], "line": r["line"], "old": int(r["value"]), "new": raised}
        for r in written[:3]
    ]
    named = [Site(str(r["file"]), int(r["line"]), "", str(r.get("code", ""))) for r in written[:1]]
    yield Finding(
        "pipeline.truncation",
        "suspected",
        0.62,
        "All texts are cut before the part that is to be learned from them",
        places(*named, *cuts[:1], *loader_sites(run)[::-1])[:4],
        (
            Evidence(
                f"all {total} rows have {limit} tokens, and the source cuts texts at such a number",
                "samples",
            ),
            evidence,
        ),
        Fix("Raise the limit, or cut another part of the text than the one that is to be learned."),
        experiment="limit_raised",
        params={"limit": limit, "numbers": numbers},
    )


def _tells_nothing(run: Run) -> Evidence | None:
    trained = (run.facts.get("label_probe") or {}).get("batches")
    if (
        trained is None
        or trained["kind"] != "classes"
        or trained["z"] >= 4.0
        or learned(run, trained)
    ):
        return None
    text = (
        f"what is left says nothing about the labels ({trained['score']:.3f} on "
        f"{trained['num']} trained pairs)"
    )
    return Evidence(text, "label_probe", value=trained["score"], expected=trained["chance"])


def _never_closed(rows: Mapping[str, Any]) -> Evidence | None:
    """Texts of a language model, each from its beginning, of which hardly two end alike."""
    targets = rows.get("targets") or {}
    ends = dict(targets.get("last_at_limit") or {})
    total = ends.pop("all", 0)
    if total < 100 or float(targets.get("copies") or 0.0) < 0.9 or not _begin_alike(rows):
        return None
    commonest = max(ends.values(), default=0) / total
    if commonest > 0.5:
        return None
    return Evidence(
        f"all rows begin with one id, and no id ends more than {commonest:.0%} of them",
        "samples",
        value=commonest,
    )


def _numbers(run: Run, limit: int) -> list[int]:
    """The limit as it may be written: as it is, or as the cut has it when the model is given a
    token less.
    """
    rows = [
        r["value"]
        for r in run.facts.get("source_lines") or ()
        if r["kind"] == "cut" and r.get("value") is not None
    ]
    return [limit, *sorted({v for v in rows if 0 < v - limit <= 2})]


def _begin_alike(rows: Mapping[str, Any]) -> bool:
    """Every row begins with one and the same id: these are texts, each from its beginning, and no
    blocks cut from longer ones.
    """
    starts = dict(rows.get("starts") or {})
    total = starts.pop("all", 0)
    return bool(total > 0 and max(starts.values(), default=0) >= 0.98 * total)


def _lost(targets: Mapping[str, Any]) -> tuple[str, str, float, float] | None:
    at, below = targets.get("rows_at_limit", 0), targets.get("rows_below", 0)
    if at < 20 or below < 20:
        return None
    lost, kept = targets["empty_at_limit"] / at, targets["empty_below"] / below
    if lost < 0.3 or kept > 0.05:
        return None
    text = (
        f"{lost:.0%} of the rows at the limit have no target that counts, {kept:.0%} of the "
        "shorter ones"
    )
    return text, "Long samples are cut before the part that is to be learned", lost, kept


def _unclosed(targets: Mapping[str, Any]) -> tuple[str, str, float, float] | None:
    """The terminator of the shorter rows is missing at the limit."""
    predicts = (
        max(float(targets.get("copies") or 0.0), float(targets.get("copies_here") or 0.0)) > 0.9
    )
    # inputs alone do not tell: a language model is given all but the last token, the marker of its
    # longest rows
    if not predicts:
        return None
    below, at = dict(targets["last_below"]), dict(targets["last_at_limit"])
    num_below, num_at = below.pop("all", 0), at.pop("all", 0)
    if num_below < 20 or num_at < 20:
        return None
    end, times = max(below.items(), key=lambda item: item[1])
    closed = at.get(end, 0) / num_at
    if times < 0.9 * num_below or closed > 0.5:
        return None
    if max(at.values(), default=0) > 0.95 * num_at:
        # the longest rows end alike too: they are whole, and what the shorter ones end in is
        # padding
        return None
    text = (
        f"{times / num_below:.0%} of the shorter rows end in id {end}, {closed:.0%} of those "
        "at the limit"
    )
    return text, "Long texts are cut without their end marker", closed, times / num_below


def _unanswerable(rows: Mapping[str, Any]) -> tuple[str, str, float, float] | None:
    """One label per row: what is left of long texts does not tell it, while short texts are
    answered.
    """
    answers = rows.get("answers") or {}
    at, below = answers.get("at_limit") or {}, answers.get("below") or {}
    if at.get("rows", 0) < 50 or below.get("rows", 0) < 20:
        return None
    if below["right"] - at["right"] < 0.2 or 1.0 - at["right"] < 4.0 * (1.0 - below["right"]):
        return None
    text = (
        f"{at['right']:.0%} of the rows at the limit are answered right (always the same answer: {at['commonest']:.0%}), "
        f"{below['right']:.0%} of the shorter ones"
    )
    return (
        text,
        "Long texts are cut before the part that their label depends on",
        at["right"],
        below["right"],
    )
