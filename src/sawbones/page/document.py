"""The page as one HTML document: style, drawing code and its own script, nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from sawbones.report.html import DRAWING, asset

SECTIONS = {
    "findings": "Findings",
    "now": "Now",
    "layers": "By layer",
    "data": "Data",
    "ranks": "Ranks",
    "compare": "Compare",
    "about": "About",
}


def _own(name: str) -> str:
    return (files("sawbones.page") / name).read_text(encoding="utf-8")


def document() -> tuple[str, str]:
    """The page, and the policy that goes into its header: its own script and its own server."""
    script = asset(*DRAWING) + "\n" + _own("live.js")
    style = asset("page.css") + _own("live.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title in SECTIONS.items())
    sections = "".join(
        f'<section id="{name}" aria-labelledby="head-{name}"><h2 id="head-{name}">{title}</h2>'
        f'<div class="body"></div></section>'
        for name, title in SECTIONS.items()
    )
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>Sawbones</title><style>{style}</style></head>\n"
        '<body class="live"><a class="skip" href="#content">to the content</a>'
        '<header><p class="brand">Sawbones <span class="quiet" id="names"></span></p>'
        '<h1 id="state" role="status">Waiting for the first step</h1>'
        '<dl id="numbers"></dl></header>'
        f'<nav aria-label="Sections">{links}</nav><main id="content">{sections}</main>'
        f"<noscript>This page needs JavaScript.</noscript><script>{script}</script></body></html>\n"
    )
    return page, policy
