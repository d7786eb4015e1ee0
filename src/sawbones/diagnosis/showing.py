"""A diagnosis for the person in front of it: a page inside the notebook, or text in a terminal."""

from __future__ import annotations

import html
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sawbones.diagnosis.source_files import sources_of
from sawbones.observe.notebook import kernel

if TYPE_CHECKING:
    from sawbones.schema import Report, Run

PAGE_HEIGHT = 620  # pixels of the notebook


def show(report: Report, run: Run) -> None:
    if kernel() is None:
        from rich.console import Console

        from sawbones.report.terminal import render_terminal

        render_terminal(report, Console())
        return
    from IPython.display import HTML, display

    display(HTML(framed(page(report, run))))


def page(report: Report, run: Run) -> str:
    from sawbones.report.html import write_html

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        write_html(report, run, file, sources_of(report, Path.cwd()))
        return file.read_text(encoding="utf-8")


def framed(text: str) -> str:
    """A page inside a page: its style and its script stay its own. (In a block, since IPython warns of
    a lone frame.)
    """
    return (
        f'<div><iframe title="Sawbones report" srcdoc="{html.escape(text, quote=True)}" '
        f'style="width:100%;height:{PAGE_HEIGHT}px;border:0"></iframe></div>'
    )
