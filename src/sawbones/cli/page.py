"""sawbones page RUN...: recorded runs in a browser, also while they go on."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sawbones.cli import values
from sawbones.cli.arguments import Parser, is_run_folder, usage_error
from sawbones.cli.printing import say

if TYPE_CHECKING:
    from sawbones.page.server import PageServer

DESCRIPTION = """A page with the curves, findings, layers, data and ranks of a run, while it goes on or afterwards.

Two to twenty runs are compared. The page is served on this machine alone; the link holds a token. Ctrl-C ends it."""
LINGER_SECONDS = 15.0  # after the training has ended and nobody looks any more
MOST_RUNS = 20


def run(args: list[str]) -> None:
    p = Parser("sawbones page", DESCRIPTION)
    p.add_argument(
        "--port",
        type=values.whole(1, 65535),
        default=0,
        metavar="N",
        help="port on 127.0.0.1 (default: any free one)",
    )
    p.add_argument("--beside", type=int, metavar="PID", help=argparse.SUPPRESS)
    p.add_argument("runs", nargs="+", metavar="RUN", help="run folders (.sawbones/...)")
    given = p.parse_args(args)
    folders = [Path(name) for name in given.runs]
    if len(folders) > MOST_RUNS:
        usage_error(f"{len(folders)} runs: at most {MOST_RUNS} fit on one page")
    for folder in folders:
        if given.beside is None and not is_run_folder(folder):
            usage_error(f"no recorded run in {folder}. Those in .sawbones: sawbones runs")
    try:
        server = _server(folders, given.port)
    except OSError as error:
        usage_error(f"port {given.port} of 127.0.0.1: {error.strerror}. Another: --port N")
    if given.beside is not None:
        _beside(server, given.beside)
        raise SystemExit(0)
    server.start()
    say("\n".join(link_lines(server.link)), error=True)
    try:
        while True:
            time.sleep(3600)
    finally:
        server.stop()


def _server(folders: list[Path], port: int) -> PageServer:
    from sawbones.page.hub import Hub
    from sawbones.page.server import PageServer

    return PageServer(Hub(folders), port)


def link_lines(link: str) -> list[str]:
    port = link.split(":")[2].split("/")[0]
    return [
        f"sawbones: {link}",
        f"  from another machine: ssh -N -L {port}:127.0.0.1:{port} {socket.gethostname()}",
        "  and open the same link there",
    ]


def _beside(server: PageServer, training: int) -> None:
    """The server of `sawbones run --page`: ends some time after the training, when nobody looks."""
    os.nice(10)
    server.start()
    print(server.link, flush=True)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    server.last_seen = time.monotonic()
    while True:
        time.sleep(1.0)
        if _is_alive(training) or server.hub.clients:
            server.last_seen = time.monotonic()
        elif time.monotonic() - server.last_seen > LINGER_SECONDS:
            server.stop()
            return


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


# Starts the server and leaves it behind: as a grandchild it is nothing that a script that waits
# for its children would meet.
_LEAVE_BEHIND = """
import subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          start_new_session=True, text=True)
print(server.stdout.readline().strip())
"""


def start_beside(folder: Path) -> str:
    """The link of a page over a run that this process is about to record; "" where none came."""
    command = [sys.executable, "-m", "sawbones", "page", "--beside", str(os.getpid()), str(folder)]
    done = subprocess.run(
        [sys.executable, "-c", _LEAVE_BEHIND, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    return done.stdout.strip()
