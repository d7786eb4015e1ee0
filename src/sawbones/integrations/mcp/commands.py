"""A Sawbones command in a process of its own: its lines as progress, its end by cancelling."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream
from anyio.streams.buffered import BufferedByteReceiveStream

LONGEST_LINE = 1 << 16
MOST_OUTPUT = 32 << 20
SECONDS_TO_END = 20.0  # children and their scratch folders are removed within it

Tell = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class Done:
    status: int
    output: str
    said: str  # the end of standard error


async def command(arguments: Sequence[str], folder: Path, tell: Tell) -> Done:
    """`sawbones ARGUMENTS` in the folder. When the caller is cancelled, the command is ended."""
    process = await anyio.open_process(
        [sys.executable, "-m", "sawbones", *arguments],
        stdin=subprocess.DEVNULL,  # ours is the protocol's
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "100"},
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    output: list[bytes] = []
    lines: list[str] = []

    async def collect(stream: ByteReceiveStream) -> None:
        size = 0
        async for part in stream:
            size += len(part)
            if size <= MOST_OUTPUT:
                output.append(part)

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(collect, process.stdout)
            await _lines(process.stderr, lines, tell)
            await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            await _ended(process)
    text = b"".join(output).decode("utf-8", "replace")
    return Done(process.returncode or 0, text, "\n".join(lines[-20:]))


async def _lines(stream: ByteReceiveStream, kept: list[str], tell: Tell) -> None:
    buffered = BufferedByteReceiveStream(stream)
    while True:
        try:
            raw = await buffered.receive_until(b"\n", LONGEST_LINE)
        except (anyio.IncompleteRead, anyio.DelimiterNotFound):
            return
        line = raw.decode("utf-8", "replace").strip()
        if line:
            kept.append(line)
            await tell(line)


async def _ended(process: anyio.abc.Process) -> None:
    if process.returncode is None:
        process.terminate()  # it ends its own children and cleans up behind them
        with anyio.move_on_after(SECONDS_TO_END):
            await process.wait()
    if process.returncode is None:
        process.kill()
    await process.aclose()
