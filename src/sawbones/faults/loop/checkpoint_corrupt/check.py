"""A checkpoint file that cannot be read back, or holds something else than was written

## What it sees
Every torch.save and torch.load: size of the file and sums of its tensors. Fires when a load fails
because the file is not a whole checkpoint (it says so, or begins as an archive and lacks the
directory that ends one), or when a file that this run has written reads back with other values.

## Why it matters
The state of the run is lost exactly when it is needed, and an altered file may go unnoticed.

## Looks like
UnpicklingError, EOFError, "failed finding central directory", or a resumed run that behaves like
another model.

## Example
    with open("last.pt", "wb") as file:
        payload = io.BytesIO()
        torch.save(state, payload)
        file.write(payload.getvalue()[:65536])

## Use instead
    torch.save(state, "last.pt.part")
    os.replace("last.pt.part", "last.pt")

## Confirm it
No experiment: what was written is compared with what was read.

## False alarms
A missing file or a refusal of weights_only is another error. A file that was replaced under another
name is not compared.

## References
torch.save writes in place; a process killed meanwhile leaves half a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.loss_calls import as_site
from sawbones.stats.protocol import sites_in

NEEDS = ("events",)
EXPLAINS = ("loop.resume-incomplete",)
EXPERIMENT = None
SIGNS = (
    "pytorchstreamreader",
    "central directory",
    "invalid magic number",
    "ran out of input",
    "unexpected eof",
    "eoferror",
    "pickle data was truncated",
    "unexpected end",
    "not a zip",
    "bad zip",
    "badzipfile",
    "not a gzipped",
    "badgzipfile",
    "end-of-stream marker",
    "invalid load key",
    "unpickling stack underflow",
    "corrupt",
    "crc",
    "safetensorerror",
    "zlib",
    "storage has wrong byte size",
    "pickle",
    "is not a checkpoint",
    "file might be corrupted",
    "could not find mark",
    "invalid argument",
)
# Of a file that something else than torch.load was reading: only what a file cut short or altered
# says of itself.
PLAIN_SIGNS = (
    "ran out of input",
    "pickle data was truncated",
    "end-of-stream marker",
    "not a gzipped",
    "safetensorerror",
    "invalid load key",
    "central directory",
    "badzipfile",
)
NOT_SIGNS = ("weights_only", "weights only", "can't get attribute", "no module named")


def check(run: Run) -> Iterator[Finding]:
    files = list(run.facts.get("files") or ())
    for number, row in enumerate(files):
        before = _written(files[:number], row)
        said = _failed(run, row, before) or _changed(row, before)
        if said is not None:
            yield _finding(run, row, before, said)
            return
    last = _said(run)
    if (
        run.num_steps
        and any(s in last.lower() for s in PLAIN_SIGNS)
        and not any(s in last.lower() for s in NOT_SIGNS)
    ):
        row = {"step": run.num_steps, "site": None, "path": "", "size": -1}
        yield _finding(
            run,
            row,
            None,
            (
                "The checkpoint cannot be read back",
                f"reading it ends in {last.splitlines()[0][:160]}",
            ),
        )


def _written(earlier: list[Mapping[str, Any]], row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What this run wrote to that path, else to a file of that name elsewhere."""
    saves = [r for r in reversed(earlier) if r["action"] == "save"]
    same = next((r for r in saves if r["path"] == row["path"]), None)
    if same is not None or row["action"] == "load":
        return same
    name = str(row["path"]).rsplit("/", 1)[-1]
    return next((r for r in saves if str(r["path"]).rsplit("/", 1)[-1] == name), None)


def _finding(
    run: Run, row: Mapping[str, Any], before: Mapping[str, Any] | None, said: tuple[str, str]
) -> Finding:
    title, text = said
    saved, loaded = as_site(before["site"]) if before else None, as_site(row["site"])
    # A file that was not left as torch.save wrote it: the user's own lines that write come first.
    by_hand = before is None or before["path"] != row["path"] or row["size"] != before["size"]
    writes = [w for w in sites_in(run, ("write",)) if ".std" not in w.code] if by_hand else []
    writes.sort(
        key=lambda w: (
            saved is None or w.file != saved.file,
            abs(w.line - saved.line) if saved else 0,
        )
    )
    saves = [as_site(r["site"]) for r in run.facts.get("files") or () if r["action"] == "save"]
    places: tuple[Site | None, ...] = (
        *writes[:1],
        saved,
        *writes[1:2],
        loaded,
        run.ending.site,
        *saves,
    )
    return Finding(
        "loop.checkpoint-corrupt",
        "proven",
        0.95,
        title,
        tuple(dict.fromkeys(p for p in places if p is not None))[:4],
        (Evidence(text, "checkpoints", (int(row["step"]),)),),
        Fix(
            "Write to a temporary file, flush it, and rename it with os.replace; check a "
            "digest before loading."
        ),
    )


def _said(run: Run) -> str:
    return (
        f"{run.ending.exception}: {run.ending.message or ''}"
        if run.ending.kind == "exception"
        else ""
    )


def _failed(
    run: Run, row: Mapping[str, Any], before: Mapping[str, Any] | None
) -> tuple[str, str] | None:
    if row["action"] != "failed load" or row["size"] < 0:
        return None
    message = str(row.get("error") or "") or _said(run)
    low = message.lower()
    shrunk = before is not None and 0 <= row["size"] < before["size"]
    if (
        not shrunk
        and not row.get("cut")
        and (any(s in low for s in NOT_SIGNS) or not any(s in low for s in SIGNS))
    ):
        return None
    size = f"{row['size']} bytes" + (f", {before['size']} when it was written" if before else "")
    return (
        "The checkpoint cannot be read back",
        f"{row['path']} ({size}) does not load: {message.splitlines()[0][:160] if message else ''}",
    )


def _changed(row: Mapping[str, Any], before: Mapping[str, Any] | None) -> tuple[str, str] | None:
    if (
        row["action"] != "load"
        or before is None
        or not before.get("digest")
        or row.get("digest") is None
    ):
        return None
    written, read = before["digest"], row["digest"]
    pairs = [(a, b) for a, b in zip(written, read, strict=False) if a == a and b == b]
    differ = [(a, b) for a, b in pairs if abs(a - b) > 1e-6 * (abs(a) + 1)]
    if len(written) == len(read) and not differ:
        return None
    if len(written) != len(read):
        text = (
            f"{row['path']} was written with {len(written)} tensors and read back with {len(read)}"
        )
    else:
        text = (
            f"{len(differ)} of {len(pairs)} tensors of {row['path']} read back changed (sum "
            f"{differ[0][1]:g}, not {differ[0][0]:g})"
        )
    return "The checkpoint holds something else than was written", text
