"""The files and formats in which `diagnose` and `check` hand over a report."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sawbones.cli import values
from sawbones.cli.arguments import usage_error
from sawbones.cli.printing import say, wrote

if TYPE_CHECKING:
    from sawbones.schema import Report

WITH_VALUE = {"--junit", "--sarif", "--format", "--summary"}
FORMATS = ("terminal", "lines", "github")


def add_flags(p: argparse.ArgumentParser) -> None:
    for flag, written in (
        ("--junit", "JUnit XML"),
        ("--sarif", "SARIF 2.1.0"),
        ("--summary", "a summary in Markdown"),
    ):
        p.add_argument(flag, type=values.file_to_write, metavar="FILE", help=f"write {written}")
    p.add_argument(
        "--format",
        choices=FORMATS,
        default="terminal",
        metavar="FORMAT",
        help="what is printed: terminal (default); lines, one `file:line: what` per finding, for "
        "editors; github, annotations for GitHub Actions, and the summary to its job page",
    )


def reject_clashes(given: argparse.Namespace) -> None:
    """Two flags that name one file would leave the last report only."""
    named: dict[str, str] = {}
    for flag in ("json", "html", "junit", "sarif", "summary"):
        file = getattr(given, flag, None)
        if file and file in named:
            usage_error(f"--{named[file]} and --{flag} both name {file}")
        if file:
            named[file] = flag


def write_files(report: Report, given: argparse.Namespace) -> list[str]:
    """Writes what was asked for, and says what could not be written."""
    from sawbones import __version__
    from sawbones.report.junit import to_junit
    from sawbones.report.markdown import to_markdown
    from sawbones.report.sarif import to_sarif

    def sarif() -> str:
        return to_sarif(report, __version__, repository_folder())

    writers: dict[str, Callable[[], str]] = {
        "junit": lambda: to_junit(report, repository_folder()),
        "sarif": sarif,
        "summary": lambda: to_markdown(report),
    }
    failed = []
    for flag, text in writers.items():
        path, mode = getattr(given, flag), "w"
        if flag == "summary" and not path and given.format == "github":
            path, mode = os.environ.get("GITHUB_STEP_SUMMARY"), "a"  # other steps write there too
        if not path:
            continue
        if path == "-":
            say(text())
            continue
        try:
            with open(path, mode, encoding="utf-8", errors="backslashreplace") as file:
                file.write(text())
            wrote(path)
        except OSError as error:
            failed.append(f"{path} could not be written: {error.strerror}")
    return failed


def print_report(report: Report, given: argparse.Namespace) -> None:
    """In the format that was asked for."""
    from sawbones.cli.screen import Screen
    from sawbones.report.terminal import render_terminal

    if given.format == "github":
        from sawbones.report.github import to_annotations

        for line in to_annotations(report, repository_folder()):
            say(line)
    brief = given.quiet or given.format == "lines"
    render_terminal(report, Screen(), quiet=brief)


def repository_folder() -> str:
    """This folder, seen from the root of the repository in a CI job; "" elsewhere, or at the
    root.
    """
    root = os.environ.get("GITHUB_WORKSPACE")
    if not root:
        return ""
    try:
        relative = Path.cwd().resolve().relative_to(Path(root).resolve())
    except ValueError:
        return ""
    return "" if relative == Path() else relative.as_posix()
