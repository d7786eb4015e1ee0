"""Fix + source text -> unified diff.

A check names a change by the text on the finding's line; here it becomes a patch that `git apply`
or `patch` takes. A patch that would not apply or would break the file's syntax is worse than none,
so those cases give None.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import os
import textwrap
from collections.abc import Iterator, Mapping

from sawbones.schema import Finding, Fix, Report, Site

# Such a line belongs to the statement above it: nothing can be put between the two.
CONTINUATIONS = ("elif", "else", "except", "finally", "case")


def with_patches(report: Report, sources: Mapping[str, str]) -> Report:
    """The report with `fix.patch` filled in wherever the source text allows it."""
    return dataclasses.replace(
        report,
        findings=tuple(_with_patch(finding, sources) for finding in report.findings),
        refuted=tuple(_with_patch(finding, sources) for finding in report.refuted),
        ignored=tuple(
            dataclasses.replace(item, finding=_with_patch(item.finding, sources))
            for item in report.ignored
        ),
    )


def _with_patch(finding: Finding, sources: Mapping[str, str]) -> Finding:
    if finding.fix is None or finding.fix.patch is not None or not finding.where:
        return finding
    source = source_of(finding.where[0], sources)
    patch = None if source is None else unified_diff(finding.fix, finding.where[0], source)
    if patch is None:
        return finding
    # Nobody has run the patched script yet.
    fix = dataclasses.replace(finding.fix, patch=patch, level="unsafe")
    return dataclasses.replace(finding, fix=fix)


def source_of(site: Site, sources: Mapping[str, str]) -> str | None:
    """The text of the site's file. A run records it as the script was started, so its folder may
    differ.
    """
    if site.file in sources:
        return sources[site.file]
    wanted = os.path.normpath(site.file)
    ends = [name for name in sources if _same_end(os.path.normpath(name), wanted)]
    return sources[ends[0]] if len(ends) == 1 else None


def _same_end(one: str, other: str) -> bool:
    return one == other or one.endswith(os.sep + other) or other.endswith(os.sep + one)


def unified_diff(fix: Fix, site: Site, source: str, context: int = 3) -> str | None:
    """The fix at `site` as a unified diff of `source`; None when it names no change that can be
    made there.
    """
    if fix.patch is not None:
        return fix.patch
    before = _lines(source)
    if not 1 <= site.line <= len(before):
        return None
    after = _apply(fix, site.line, before)
    if after is None or after == before:
        return None
    if _parse("".join(before)) is not None and _parse("".join(after)) is None:
        return None
    # An absolute path takes no prefix: `a//home/...` is a path that no tool finds.
    old, new = (
        (site.file, site.file) if os.path.isabs(site.file) else (f"a/{site.file}", f"b/{site.file}")
    )
    return "".join(_marked(difflib.unified_diff(before, after, old, new, n=context)))


def _lines(source: str) -> list[str]:
    # Only line feeds count: splitlines() also splits at form feeds and U+2028, where Python's line
    # numbers don't.
    parts = source.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def _marked(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _apply(fix: Fix, line: int, before: list[str]) -> list[str] | None:
    statement = _statement("".join(before), line)
    first, last = (statement.lineno, statement.end_lineno or line) if statement else (line, line)
    after = list(before)
    if fix.replace is not None:
        replaced = _replace(before, line, first, last, *fix.replace)
        if replaced is None:
            return None
        after = replaced
    # From the end backwards, so that the line numbers of the original keep their meaning; a
    # replacement keeps to its
    # statement, whose end moves by what it added.
    last += len(after) - len(before)
    ending = "\r\n" if before[0].endswith("\r\n") else "\n"
    if fix.insert_after is not None:
        body = getattr(statement, "body", None)
        if isinstance(body, list) and body and body[0].lineno > line:
            # After the header of a block means: as the first statement of its body.
            at, indent = (
                body[0].lineno - 1 + len(after) - len(before),
                _indent(before[body[0].lineno - 1]),
            )
        else:
            at, indent = last, _indent(before[first - 1])
        if at and not after[at - 1].endswith("\n"):
            after[at - 1] += ending
        after[at:at] = _block(fix.insert_after, indent, ending)
    if fix.insert_before is not None:
        after[first - 1 : first - 1] = _block(fix.insert_before, _indent(before[first - 1]), ending)
    return after


def _replace(
    before: list[str], line: int, first: int, last: int, old: str, new: str
) -> list[str] | None:
    """The line itself, else the lines of its statement: a call over several lines is reported at
    one of them.
    """
    for start, stop in ((line, line), (first, last)):
        text = "".join(before[start - 1 : stop])
        if old and old in text:
            return before[: start - 1] + _lines(text.replace(old, new, 1)) + before[stop:]
    return None


def _statement(source: str, line: int) -> ast.stmt | None:
    """The innermost statement that covers `line` and that something can be put in front of."""
    tree = _parse(source)
    if tree is None:
        return None
    lines = _lines(source)
    covering = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    # The innermost one is the shortest; of `if x: y` on one line, the outer one.
    covering.sort(
        key=lambda node: ((node.end_lineno or node.lineno) - node.lineno, node.col_offset)
    )
    for node in covering:
        words = lines[node.lineno - 1].replace(":", " ").split()
        if not words or words[0] not in CONTINUATIONS:
            return node
    return None


def _parse(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _block(text: str, indent: str, ending: str) -> list[str]:
    lines = textwrap.dedent(text).strip("\n").split("\n")
    return [(indent + line if line.strip() else "") + ending for line in lines]
