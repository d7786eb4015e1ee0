"""sawbones mcp: the commands as tools for agents, over standard input and output."""

from __future__ import annotations

from pathlib import Path

from sawbones.cli.arguments import Parser, usage_error

DESCRIPTION = """A server of the Model Context Protocol over standard input and output, for agents: diagnose, fix, try,
query, compare, explain and details, with progress and cancelling. It works in one folder only.

Read-only by default: scripts run in private copies, and nothing in the folder changes. With --writes there is also `run`,
which runs a script for real, and `fix` may write verified patches.

To add it to an agent, give it the command: sawbones mcp --folder /path/to/project (docs/how-to/agents.md)"""


def run(args: list[str]) -> None:
    p = Parser("sawbones mcp", DESCRIPTION)
    p.add_argument(
        "--folder", default=".", metavar="FOLDER", help="the folder to work in (default: this one)"
    )
    p.add_argument(
        "--writes", action="store_true", help="also offer `run`, and let `fix` write its patches"
    )
    given = p.parse_args(args)
    folder = Path(given.folder)
    if not folder.is_dir():
        usage_error(f"--folder {given.folder} is no folder")
    from sawbones.schema.errors import SawbonesError

    try:
        from sawbones.integrations.mcp.server import server
    except SawbonesError as error:
        usage_error(str(error))
    server(folder, given.writes).run("stdio")
    raise SystemExit(0)
