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

from collections.abc import Iterator, Sequence

from sawbones.evidence import NothingToJudge, exact, finding, refused
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Evidence, Finding, Fix, Run
from sawbones.schema.one_off import CheckpointFile
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import calls_of

NEEDS = ("events",)
USES = ("files", "source_calls")
EXPLAINS = ("loop.resume-incomplete",)
EXPERIMENT = None
# What a file cut short or altered says of itself, whatever was reading it.
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
# What torch.load says of one as well.
SIGNS = (
    *PLAIN_SIGNS,
    "pytorchstreamreader",
    "invalid magic number",
    "unexpected eof",
    "eoferror",
    "unexpected end",
    "not a zip",
    "bad zip",
    "badgzipfile",
    "unpickling stack underflow",
    "corrupt",
    "crc",
    "zlib",
    "storage has wrong byte size",
    "pickle",
    "is not a checkpoint",
    "could not find mark",
    "invalid argument",
)
NOT_SIGNS = ("weights_only", "weights only", "can't get attribute", "no module named")
UNREADABLE = "The checkpoint cannot be read back"


def check(run: Run) -> Iterator[Finding]:
    files = run.files
    last = _said(run)
    if not files and not last:
        raise NothingToJudge("no checkpoint was written or read")
    for number, row in enumerate(files):
        before = _written(files[:number], row)
        said = _failed(run, row, before) or _changed(row, before)
        if said is not None:
            yield _finding(run, row, before, *said)
            return
    if run.num_steps and _is_broken_file(last, PLAIN_SIGNS):
        row = CheckpointFile("", "", -1, run.num_steps)
        text = f"reading it ends in {last.splitlines()[0][:160]}"
        yield _finding(run, row, None, UNREADABLE, refused(text, steps=(run.num_steps,)))


def _said(run: Run) -> str:
    crashed = run.ending.kind == "exception"
    return f"{run.ending.exception}: {run.ending.message or ''}" if crashed else ""


def _is_broken_file(message: str, signs: tuple[str, ...]) -> bool:
    low = message.lower()
    return any(s in low for s in signs) and not any(s in low for s in NOT_SIGNS)


def _written(earlier: Sequence[CheckpointFile], row: CheckpointFile) -> CheckpointFile | None:
    """What this run wrote to that path, else to a file of that name elsewhere."""
    saves = [r for r in reversed(earlier) if r.action == "save"]
    same = next((r for r in saves if r.path == row.path), None)
    if same is not None or row.action == "load":
        return same
    name = row.path.rsplit("/", 1)[-1]
    return next((r for r in saves if r.path.rsplit("/", 1)[-1] == name), None)


def _finding(
    run: Run, row: CheckpointFile, before: CheckpointFile | None, title: str, reading: Evidence
) -> Finding:
    saved = before.site if before else None
    # A file that was not left as torch.save wrote it: the user's own lines that write come first.
    by_hand = before is None or before.path != row.path or row.size != before.size
    writes = [w for w in calls_of(run, ("write",)) if ".std" not in w.code] if by_hand else []
    if saved is not None:
        writes.sort(key=lambda w: (w.file != saved.file, abs(w.line - saved.line)))
    saves = [r.site for r in run.files if r.action == "save"]
    return finding(
        title,
        locate(*writes[:1], saved, *writes[1:2], row, run.ending, *saves)[:4],
        (reading,),
        Fix(
            "Write to a temporary file, flush it, and rename it with os.replace; check a "
            "digest before loading."
        ),
    )


def _failed(
    run: Run, row: CheckpointFile, before: CheckpointFile | None
) -> tuple[str, Evidence] | None:
    if row.action != "failed load" or row.size < 0:
        return None
    message = row.error or _said(run)
    shrunk = before is not None and row.size - before.size < 0
    if not shrunk and not row.cut and not _is_broken_file(message, SIGNS):
        return None
    size = f"{row.size} bytes" + (f", {before.size} when it was written" if before else "")
    first = message.splitlines()[0][:160] if message else ""
    text, step = f"{row.path} ({size}) does not load: {first}", (row.step,)
    if before is not None and shrunk:
        return UNREADABLE, exact(
            text, row.size, expected=before.size, signal="checkpoints", steps=step
        )
    return UNREADABLE, refused(text, signal="checkpoints", steps=step)


def _changed(row: CheckpointFile, before: CheckpointFile | None) -> tuple[str, Evidence] | None:
    if row.action != "load" or before is None:
        return None
    written, read = before.digest, row.digest
    if not written or read is None:
        return None
    pairs = [(a, b) for a, b in zip(written, read, strict=False) if a == a and b == b]
    differ = [
        (a, b) for a, b in pairs if limits.CHECKPOINT_SUMS.passed_by(abs(a - b) / (abs(a) + 1))
    ]
    title = "The checkpoint holds something else than was written"
    step = (row.step,)
    if len(written) != len(read):
        text = f"{row.path} was written with {len(written)} tensors and read back with {len(read)}"
        return title, exact(
            text, len(read), expected=len(written), signal="checkpoints", steps=step
        )
    if not differ:
        return None
    text = (
        f"{len(differ)} of {len(pairs)} tensors of {row.path} read back changed (sum "
        f"{differ[0][1]:g}, not {differ[0][0]:g})"
    )
    return title, exact(text, len(differ), signal="checkpoints", steps=step)
