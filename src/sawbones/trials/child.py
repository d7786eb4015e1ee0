"""The child process of an observation or an experiment: the user's script, watched, under remedies.

Started as `python -m sawbones.trials.child SPEC.json` in its own process group and in a
room of its own (see isolation). With several ranks this process becomes torchrun, which starts the
same module once per rank.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sawbones.isolation import guarding
from sawbones.isolation.family import die_with_parent, tie_forks
from sawbones.masking.process import hand_over
from sawbones.observe.launch import Session, run_script
from sawbones.observe.options import Options


@dataclass(frozen=True)
class Remedy:
    """A virtual fix: the name of a file of experiments/remedies and its parameters."""

    name: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Spec:
    script: str  # relative to the working folder, or absolute
    argv: tuple[str, ...]
    run_folder: str
    working_folder: str
    options: Options
    guarding: dict[str, Any]  # what is held back, for isolation.guarding
    remedies: tuple[Remedy, ...] = ()
    num_ranks: int = 1
    torchrun: bool = False  # also for one rank, for scripts that expect its environment
    parent: int | None = None  # process id of the bench

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "options": json.loads(self.options.to_json())})

    @staticmethod
    def from_json(text: str) -> Spec:
        raw = json.loads(text)
        raw["options"] = Options.from_json(json.dumps(raw["options"]))
        raw["argv"] = tuple(raw["argv"])
        raw["remedies"] = tuple(Remedy(r["name"], r["params"]) for r in raw["remedies"])
        return Spec(**raw)


def main() -> None:
    told = Path(sys.argv[1])
    spec = Spec.from_json(told.read_text(encoding="utf-8"))
    launched = "TORCHELASTIC_RUN_ID" in os.environ
    die_with_parent(None if launched else spec.parent)
    if (spec.num_ranks > 1 or spec.torchrun) and not launched:
        _become_torchrun(spec.num_ranks)
        return
    tie_forks()
    os.chdir(spec.working_folder)
    rank = int(os.environ.get("RANK", "0"))
    status, _ = run_script(
        spec.script,
        spec.argv,
        Path(spec.run_folder),
        spec.options,
        root=spec.working_folder,
        rank=rank,
        prepare=partial(_prepare, spec),
    )
    sys.stdout.flush()
    sys.stderr.flush()
    hand_over(told.parent)
    os._exit(
        status
    )  # the run is on disk; loader workers and user threads must not hold the experiment up


def _prepare(spec: Spec, session: Session) -> None:
    guarding.install(spec.guarding)
    for remedy in spec.remedies:
        if (
            "." in remedy.name
        ):  # a module of another part, which wants the session and not only its recorder
            importlib.import_module(remedy.name).attach(session, **remedy.params)
            continue
        module = importlib.import_module(f"sawbones.trials.remedies.{remedy.name}")
        session.on_ready.append(partial(module.install, **remedy.params))
    session.prepare_spawned = ("sawbones.trials.child", spec.to_json())


def prepare_spawned(text: str, session: Session) -> None:
    """In a process that the script started itself: the same remedies, the same redirected
    writes.
    """
    _prepare(Spec.from_json(text), session)


def _become_torchrun(num_ranks: int) -> None:
    ranks = ["--standalone", "--nproc-per-node", str(num_ranks)]
    sys.argv = ["torchrun", *ranks, "-m", "sawbones.trials.child", sys.argv[1]]
    runpy.run_module("torch.distributed.run", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
