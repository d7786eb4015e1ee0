"""Several ranks write the same checkpoint file

## What it sees
Every file that torch.save writes on every rank, with its path and step. Fires when two ranks or
more write one path after the same number of steps.

## Why it matters
Each opens the file anew and cuts off what the others have written so far. What lies there in the
end is the last one's, or a mixture that cannot be read; a rank that fails in between takes the
checkpoint with it.

## Looks like
"PytorchStreamReader failed" on resuming, now and then; all is well on one rank.

## Example
    if step % 500 == 0:
        torch.save(model.state_dict(), "last.pt")

## Use instead
    if step % 500 == 0:
        if dist.get_rank() == 0:
            torch.save(model.state_dict(), "last.pt")
        dist.barrier()

## Confirm it
Nothing is left to confirm: the ranks, the path and the step were recorded.

## False alarms
A path of its own on each machine's own disk: ranks of other machines are told by their names only
where the launcher gives each its own local numbers.

## References
The PyTorch tutorial on DistributedDataParallel, on saving and loading checkpoints.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.stats.ranks import everyone
from sawbones.trace.locate import locate

PREVIEW = True
NEEDS = ("ranks",)
USES = ("files",)
EXPLAINS = ("loop.checkpoint-corrupt",)
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    writers: dict[tuple[str, int], list[int]] = defaultdict(list)
    sites: dict[tuple[str, int], Site | None] = {}
    for ours in everyone(run):
        for row in ours.files:
            if row.action == "save":
                key = row.path.removeprefix("./"), row.step
                writers[key].append(ours.rank)
                sites.setdefault(key, row.site)
    if not writers:
        raise NothingToJudge("no rank wrote a checkpoint")
    shared = {key: sorted(set(ranks)) for key, ranks in writers.items() if len(set(ranks)) > 1}
    if not shared:
        return
    (path, step), ranks = min(shared.items(), key=lambda item: item[0][1])
    names = ", ".join(map(str, ranks))
    text = (
        f"{path.rpartition('/')[2]} is written by {len(ranks)} ranks ({names}) after step {step}, "
        f"and so are {len(shared)} of {len(writers)} files"
    )
    yield finding(
        f"{len(ranks)} ranks write the same checkpoint file",
        locate(sites[path, step]),
        (exact(text, len(ranks), expected=1, signal="files", steps=(step,)),),
        Fix(
            "Let one rank write it: `if dist.get_rank() == 0:` before torch.save, a barrier after."
        ),
    )
