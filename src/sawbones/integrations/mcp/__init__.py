"""`sawbones mcp`: the commands as tools of the Model Context Protocol, by the official Python SDK.

commands.py starts a command in a process of its own and passes its progress on; answers.py makes
of what it says an answer of bounded size in which the user's text is marked; server.py has the
tools.
"""

from __future__ import annotations

from sawbones.schema.errors import SawbonesError

try:
    import mcp.server.mcpserver  # noqa: F401  versions before 2 do not have it
except ImportError as error:
    raise SawbonesError(
        f"sawbones mcp needs the MCP SDK ({error}): pip install 'mcp>=2,<3'"
    ) from error
