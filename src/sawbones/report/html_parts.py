"""Pieces of a page: escaped text, the place of a picture, source lines with colours, a diff."""

from __future__ import annotations

import html
import keyword
import re

from sawbones.masking import shown
from sawbones.report.figures import Figure

_TOKEN = re.compile(
    r"""(?P<comment>\#.*$)
    |(?P<string>(?:\b[rbfuRBFU]{1,2})?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\"{3}.*$|'{3}.*$))
    |(?P<number>\b\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?\b)
    |(?P<word>[^\W\d]\w*)""",
    re.VERBOSE,
)
_DIFF_KINDS = {"+": "add", "-": "del", "@": "hunk", "\\": "hunk"}


def escape(text: object) -> str:
    return html.escape(shown(str(text)), quote=True)


def plot(name: str, figure: Figure, plots: dict[str, Figure], label: str) -> str:
    """The place of a picture; the figure goes into `plots` under the name that the place holds."""
    plots[name] = figure
    named = f'id="plot-{name}" data-figure="{name}" role="img" aria-label="{escape(label)}"'
    return f'<div class="plot" {named} style="min-height:{figure["height"]}px"></div>'


def coloured(line: str) -> str:
    """One line of Python, escaped, with keywords, strings, numbers and comments marked."""
    line = shown(line)
    parts, end = [], 0
    for token in _TOKEN.finditer(line):
        kind, text = str(token.lastgroup), token.group()
        parts.append(html.escape(line[end : token.start()]))
        end = token.end()
        kind = "keyword" if kind == "word" and keyword.iskeyword(text) else kind
        escaped = html.escape(text)
        parts.append(escaped if kind == "word" else f'<i class="{kind}">{escaped}</i>')
    return "".join(parts) + html.escape(line[end:])


def diff_block(patch: str) -> str:
    rows = []
    for line in patch.rstrip("\n").split("\n"):
        if line.startswith(("--- ", "+++ ")):
            rows.append(f'<span class="row file">{escape(line)}\n</span>')
            continue
        kind = _DIFF_KINDS.get(line[:1], "same")
        text = escape(line) if kind == "hunk" else escape(line[:1]) + coloured(line[1:])
        rows.append(f'<span class="row {kind}">{text or " "}\n</span>')
    return (
        f'<figure class="source diff"><pre tabindex="0"><code>{"".join(rows)}</code></pre></figure>'
    )


def code_block(text: str) -> str:
    lines = "\n".join(coloured(line) for line in text.split("\n"))
    return f'<figure class="source"><pre tabindex="0"><code class="plain">{lines}</code></pre></figure>'
