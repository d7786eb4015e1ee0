"""The tools. All of them work in one folder and, unless writing was allowed, change nothing in it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from sawbones import __version__
from sawbones.integrations.mcp.answers import (
    NOTICE,
    Json,
    data,
    fitting,
    of_report,
    part_of,
    piece,
)
from sawbones.integrations.mcp.commands import Done, command
from sawbones.masking import shown_line
from sawbones.schema.errors import SawbonesError

LONGEST_SECONDS = 3600
KEPT_REPORTS = 20
USAGE, INTERRUPTED = 2, 4
INSTRUCTIONS = f"""Sawbones finds why a PyTorch training goes wrong, proves it by running the script
again under one change, and gives the patch. The loop: diagnose(script) -> read the findings ->
fix(script), which runs every patch before it shows it -> apply it -> diagnose again: healthy.
Scripts run in a private copy of the files; answers are short, details(report, part) has the rest.
{NOTICE}"""


class Tools:
    def __init__(self, folder: Path, writes: bool) -> None:
        self._folder, self._writes = folder.resolve(), writes
        self._reports: dict[str, Json] = {}
        self._count = 0

    async def diagnose(
        self,
        script: str,
        ctx: Context[Any, Any],
        arguments: list[str] | None = None,
        seconds: int = 600,
        experiments: bool = True,
        steps: int | None = None,
    ) -> Json:
        """Run a training script (.py or .ipynb, or the folder of a recorded run) in a private copy,
        and say what is wrong: root causes with place, evidence, experiment and patch. Takes two to
        five times as long as the script, at most `seconds`. experiments=False: only observe.
        """
        flags = ["--json", "-", "--no-capture", "--seconds", str(_seconds(seconds))]
        flags += [] if experiments else ["--no-experiments"]
        flags += ["--steps", str(int(steps))] if steps is not None else []
        done = await self._call(ctx, seconds, "diagnose", *flags, *self._script(script, arguments))
        return self._report(done)

    async def fix(
        self,
        script: str,
        ctx: Context[Any, Any],
        arguments: list[str] | None = None,
        seconds: int = 900,
        apply: bool = False,
    ) -> Json:
        """The patch for each cause, run before it is shown: `level` is "verified" when the fault and
        its symptom are gone and nothing new fired. apply=True writes verified patches into the
        script, where the server was started with --writes.
        """
        if apply and not self._writes:
            raise ToolError("this server is read-only: start it with `sawbones mcp --writes`")
        flags = ["--json", "-", "--seconds", str(_seconds(seconds))]
        flags += ["--apply"] if apply else []
        done = await self._call(ctx, seconds, "fix", *flags, *self._script(script, arguments))
        return self._report(done, {"applied": apply})

    async def try_(
        self,
        trial: str,
        script: str,
        ctx: Context[Any, Any],
        arguments: list[str] | None = None,
        seconds: int = 600,
    ) -> Json:
        """Change one thing, run the script again from the same seed, and compare: trial is a name
        such as overfit-one-batch, lr=0.1, clip=1, no-amp, short (explain("try") lists them), or
        several with commas.
        """
        if trial.startswith("-"):
            raise ToolError(f"{trial!r} is no trial. One of them: overfit-one-batch")
        flags = ["--json", "-", "--seconds", str(_seconds(seconds)), trial]
        done = await self._call(ctx, seconds, "try", *flags, *self._script(script, arguments))
        rows = [
            {
                "trial": row.get("trial"),
                "outcome": row.get("outcome"),
                "result": data(row.get("result", "")),
                "meaning": row.get("meaning"),
                "baseline": row.get("baseline"),
                "with_change": row.get("with_change"),
            }
            for row in _parsed(done).get("trials", ())
        ]
        return fitting({"trials": rows, "exit_status": done.status, "notice": NOTICE})

    async def run(
        self, script: str, ctx: Context[Any, Any], arguments: list[str] | None = None
    ) -> Json:
        """Run the script for real and record it. It writes and reaches what it always does."""
        name = f".sawbones/{Path(script).stem}-{time.strftime('%Y%m%d-%H%M%S')}"
        flags = ["--quiet", "--out", name]
        done = await self._call(ctx, 0, "run", *flags, *self._script(script, arguments))
        read = await self._call(ctx, 0, "diagnose", "--json", "-", name)
        ended = {"recording": name, "exit_status": done.status, "output": data(done.output[-1500:])}
        return self._report(read, ended)

    async def query(self, recording: str, sql: str, ctx: Context[Any, Any]) -> Json:
        """SQL over a recorded run, read-only, e.g. select step, loss from steps limit 20. Tables:
        steps, events, tensors, stats, modules, batches.
        """
        folder = self._inside(recording)
        done = await self._call(ctx, 0, "query", "--format", "json", str(folder), "--", sql)
        rows = _parsed(done)
        return fitting({"rows": [data(json.dumps(row)) for row in rows], "notice": NOTICE})

    async def compare(self, good: str, bad: str, ctx: Context[Any, Any]) -> Json:
        """What changed between two recorded runs, and the first step at which their losses part."""
        folders = [str(self._inside(good)), str(self._inside(bad))]
        done = await self._call(ctx, 0, "compare", *folders)
        answer = {"differs": done.status == 1, "text": data(done.output), "notice": NOTICE}
        return fitting(answer)

    async def explain(self, words: str, ctx: Context[Any, Any], offset: int = 0) -> Json:
        """The page of a fault (model.causal-leak) or of a symptom in plain words (loss does not
        fall), from a character on.
        """
        if words.strip() == "try":
            done = await self._call(ctx, 0, "try", "--list")
        else:
            done = await self._call(ctx, 0, "explain", "--", words)
        text, begin = done.output, max(offset, 0)
        return {"text": piece(text, begin), "characters": len(text), "from": begin}

    async def details(self, report: str, part: str = "", offset: int = 0) -> Json:
        """A part of an earlier report in full, e.g. part "findings.0.fix.patch"; in pieces, by
        offset.
        """
        if report not in self._reports:
            listed = ", ".join(self._reports) or "none yet"
            raise ToolError(f"no report {report!r}. There are: {listed}")
        try:
            return part_of(self._reports[report], part, max(offset, 0))
        except SawbonesError as missing:
            raise ToolError(str(missing)) from None

    def _script(self, script: str, arguments: list[str] | None) -> list[str]:
        """Behind `--` nothing is a flag of ours."""
        path = self._inside(script)
        return ["--", str(path), *(arguments or ())]

    def _inside(self, name: str) -> Path:
        """As the commands take it; links that lead out of the folder are refused too."""
        try:
            path = (self._folder / name).resolve()
            relative = path.relative_to(self._folder)
        except (ValueError, OSError):
            raise ToolError(f"{name!r} is outside of {self._folder}: refused") from None
        if not path.exists():
            near = sorted(p.name for p in self._folder.glob("*.py"))[:8]
            raise ToolError(f"no {name!r} in {self._folder}. Scripts there: {', '.join(near)}")
        return Path(".") / relative

    async def _call(self, ctx: Context[Any, Any], seconds: float, *arguments: str) -> Done:
        began = time.monotonic()

        async def tell(line: str) -> None:
            total = float(seconds) or None
            await ctx.report_progress(time.monotonic() - began, total, shown_line(line)[:300])

        done = await command(arguments, self._folder, tell)
        if done.status == USAGE or (done.status and not done.output.strip()):
            last = shown_line(done.said.strip().splitlines()[-1]) if done.said.strip() else ""
            raise ToolError(last[:1000] or f"sawbones {arguments[0]} ended with {done.status}")
        return done

    def _report(self, done: Done, more: Json | None = None) -> Json:
        report = _parsed(done)
        self._count += 1
        name = f"r{self._count}"
        self._reports[name] = report
        while len(self._reports) > KEPT_REPORTS:
            del self._reports[next(iter(self._reports))]
        return fitting(of_report(report, name) | {"exit_status": done.status} | (more or {}))


def _seconds(given: int) -> int:
    if not 1 <= given <= LONGEST_SECONDS:
        raise ToolError(f"seconds={given}: 1 to {LONGEST_SECONDS} can be given")
    return given


def _parsed(done: Done) -> Any:
    try:
        return json.loads(done.output)
    except ValueError:
        raise ToolError(f"no report came back. It said: {shown_line(done.said)[-600:]}") from None


def server(folder: Path, writes: bool) -> MCPServer[Any]:
    tools = Tools(folder, writes)
    made: MCPServer[Any] = MCPServer(
        "sawbones", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    readers = [tools.diagnose, tools.query, tools.compare, tools.explain, tools.details]
    for tool in readers:
        made.add_tool(tool, annotations=ToolAnnotations(read_only_hint=True))
    made.add_tool(tools.try_, name="try", annotations=ToolAnnotations(read_only_hint=True))
    made.add_tool(
        tools.fix,
        annotations=ToolAnnotations(read_only_hint=not writes, destructive_hint=False),
    )
    if writes:
        made.add_tool(tools.run, annotations=ToolAnnotations(read_only_hint=False))
    return made
