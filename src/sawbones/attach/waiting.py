"""What each rank does, and which one the others wait for.

A collective returns only when every rank has come to it. So where some ranks stand in one and
others do not, the others are what everybody waits for; where all stand in one but not in the same,
they wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sawbones.attach.stacks import Place, Stack

# A process that used less than this share of a core between two looks stands still.
STILL_SHARE = 0.2

# Files of torch and Python, and what a function of theirs on the stack means.
_COLLECTIVES = "torch/distributed/distributed_c10d.py"
_NOT_COLLECTIVE = {"init_process_group", "new_group", "_new_process_group_helper"}
_DOING = (
    (_COLLECTIVES, "init_process_group", "joins the process group"),
    ("torch/distributed/rendezvous.py", "", "joins the process group"),
    ("torch/utils/data/dataloader.py", "", "waits for its data loader"),
    ("torch/autograd/graph.py", "_engine_run_backward", "is in backward"),
    ("torch/cuda/", "synchronize", "waits for its GPU"),
    ("torch/serialization.py", "save", "writes a checkpoint"),
    ("torch/serialization.py", "load", "reads a checkpoint"),
    ("multiprocessing/popen_fork.py", "", "waits for a process that it started"),
    ("subprocess.py", "", "waits for a process that it started"),
    ("threading.py", "acquire", "waits for a lock"),
    ("threading.py", "wait", "waits for another thread"),
)


@dataclass(frozen=True)
class Rank:
    """One process at two moments."""

    rank: int | None
    pid: int
    collective: str  # the one that it stands in; "" for none
    doing: str  # in words
    place: Place | None  # the user's line
    moved: bool  # between the two looks

    @property
    def name(self) -> str:
        return f"process {self.pid}" if self.rank is None else f"rank {self.rank}"


@dataclass(frozen=True)
class Conclusion:
    stuck: bool
    text: str


def look_at(rank: int | None, pid: int, first: Stack, second: Stack, cpu_share: float) -> Rank:
    collective = _collective(second)
    return Rank(
        rank,
        pid,
        collective,
        f"waits in {collective}" if collective else _doing(second),
        second.user_place,
        first.places != second.places or cpu_share > STILL_SHARE,
    )


def conclude(ranks: Sequence[Rank]) -> Conclusion:
    waiting = [r for r in ranks if r.collective]
    others = [r for r in ranks if not r.collective]
    if any(r.moved for r in waiting) or (not waiting and any(r.moved for r in others)):
        return Conclusion(False, "It goes on: stacks or CPU time moved between the two looks.")
    if waiting and others:
        missing = "; ".join(f"{r.name}, which {r.doing}{_at(r)}" for r in others)
        busy = " It is at work there: slow rather than stuck." if others[0].moved else ""
        return Conclusion(True, f"{_names(waiting)} in {_together(waiting)} for {missing}.{busy}")
    if len(waiting) > 1 and len({(r.collective, r.place) for r in waiting}) > 1:
        each = "; ".join(f"{r.name} in {r.collective}{_at(r)}" for r in waiting)
        return Conclusion(
            True, f"The ranks stand in different collectives and wait for each other: {each}."
        )
    if len(waiting) > 1:
        return Conclusion(
            True,
            f"All ranks stand in {waiting[0].collective}{_at(waiting[0])}. They came to the same "
            "call: compare its shapes and dtypes on each rank, and look at the network.",
        )
    if waiting:
        return Conclusion(
            True,
            f"{waiting[0].name} waits in {waiting[0].collective}{_at(waiting[0])} for ranks that "
            "were not looked at: name all of them, or their launcher.",
        )
    each = "; ".join(f"{r.name} {r.doing}{_at(r)}" for r in others)
    return Conclusion(True, f"It stands still: {each}.")


def _names(ranks: Sequence[Rank]) -> str:
    if len(ranks) == 1:
        return f"{ranks[0].name} waits"
    if all(r.rank is not None for r in ranks):
        numbers = [str(r.rank) for r in ranks]
        return f"ranks {', '.join(numbers[:-1])} and {numbers[-1]} wait"
    return f"{len(ranks)} processes wait"


def _together(waiting: Sequence[Rank]) -> str:
    calls = dict.fromkeys(f"{r.collective}{_at(r)}" for r in waiting)
    return " or ".join(calls)


def _at(rank: Rank) -> str:
    return f" ({rank.place.file}:{rank.place.line})" if rank.place is not None else ""


def _collective(stack: Stack) -> str:
    """The outermost function of torch's collectives below the user's line: the one that was
    called.
    """
    inner = _below_the_user(stack)
    calls = [p.function for p in inner if p.file.endswith(_COLLECTIVES)]
    calls = [name for name in calls if not name.startswith("_")]
    if any(name in _NOT_COLLECTIVE for name in calls):
        return ""
    return calls[-1] if calls else ""


def _doing(stack: Stack) -> str:
    for place in _below_the_user(stack):
        for file, function, text in _DOING:
            if file in place.file and (not function or place.function == function):
                return text
    if not stack.places:
        return "runs no Python code"
    return f"is in {stack.places[0].function}"


def _below_the_user(stack: Stack) -> tuple[Place, ...]:
    users = [i for i, place in enumerate(stack.places) if place.is_users]
    return stack.places[: users[0]] if users else stack.places
