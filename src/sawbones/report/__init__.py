"""Report -> terminal, JSON and HTML. Sees the schema only."""

from sawbones.report.html import write_html
from sawbones.report.json_report import exit_code, from_json, report_schema, to_json, write_json
from sawbones.report.terminal import render_terminal

__all__ = [
    "exit_code",
    "from_json",
    "render_terminal",
    "report_schema",
    "to_json",
    "write_html",
    "write_json",
]
