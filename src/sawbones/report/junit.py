"""Report -> JUnit XML, laid out as pytest writes it: one suite per layer, one case per fault that
was looked at, and one for the run itself. CI systems show them as tests.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import PurePosixPath
from xml.etree import ElementTree

from sawbones.masking import mask_all, masked_text
from sawbones.report import wording
from sawbones.report.masked import masked_in
from sawbones.schema import LAYERS, Finding, Report, Site

# What gave the verdict where no finding does: an illness without a cause fails, a crash and a run
# that could not be judged are errors.
KINDS = {"unexplained": "failure", "crashed": "error", "inconclusive": "error"}


def to_junit(report: Report, folder: str = "", written: datetime | None = None) -> str:
    """Likely and proven findings fail, suspected ones are in the output of a passing case; what is
    ignored or could not be seen is skipped. `folder`: where the report's paths begin, seen from
    the root of the repository.
    """
    masked = masked_text(masked_in(report))
    report = mask_all(report)
    when = (written or datetime.now(UTC)).isoformat()
    layers = {layer: _cases(report, layer, folder) for layer in LAYERS}
    suites = [_suite(layer, cases, 0.0, when) for layer, cases in layers.items() if cases]
    suites.append(_suite("subject", [_subject(report, folder)], report.seconds, when))
    if masked:  # the format has properties in a suite, before its cases
        properties = ElementTree.Element("properties")
        ElementTree.SubElement(properties, "property", name="masked", value=_clean(masked))
        suites[0].insert(0, properties)
    totals = {
        kind: str(sum(int(suite.get(kind, "0")) for suite in suites))
        for kind in ("tests", "failures", "errors")
    }
    name = {"name": _clean(f"sawbones {report.script}")}
    root = ElementTree.Element("testsuites", {**name, **totals, "time": f"{report.seconds:.3f}"})
    root.extend(suites)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    # ElementTree would declare the encoding of the locale; the file is written as UTF-8.
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _suite(
    name: str, cases: list[ElementTree.Element], seconds: float, when: str
) -> ElementTree.Element:
    """pytest names the machine as well; that is nothing to pass on."""
    count = {
        kind: str(sum(case.find(kind) is not None for case in cases))
        for kind in ("error", "failure", "skipped")
    }
    suite = ElementTree.Element(
        "testsuite",
        {
            "name": name,
            "errors": count["error"],
            "failures": count["failure"],
            "skipped": count["skipped"],
            "tests": str(len(cases)),
            "time": f"{seconds:.3f}",
            "timestamp": when,
        },
    )
    suite.extend(cases)
    return suite


def _subject(report: Report, folder: str) -> ElementTree.Element:
    """The run itself: it fails where its verdict rests on no finding."""
    case = _case("subject", "runs", _script(report), folder, report.seconds)
    kind = KINDS.get(report.verdict)
    if kind is not None:
        ill = [symptom.text for symptom in report.symptoms if symptom.stands]
        lines = [*ill, *report.notes] or [wording.headline(report)]
        _outcome(case, kind, lines[0], "\n".join(lines), report.verdict)
    return case


def _cases(report: Report, layer: str, folder: str) -> list[ElementTree.Element]:
    prefix = f"{layer}."
    cases = [_of_finding(f, report, folder) for f in report.findings if f.fault.startswith(prefix)]
    shown = {finding.fault for finding in report.findings}
    for ignored in report.ignored:
        fault = ignored.finding.fault
        if fault.startswith(prefix):
            shown.add(fault)
            case = _of_fault(fault, _place(ignored.finding, report), folder)
            text = f"{ignored.finding.title} (ignored by {ignored.by})"
            cases.append(_outcome(case, "skipped", text, text, "ignored"))
    at = _script(report)
    for fault in report.looked:
        if fault.startswith(prefix) and fault not in shown:
            cases.append(_of_fault(fault, at, folder))
    for blind in report.could_not_look:
        if blind.fault.startswith(prefix) and blind.fault not in shown:
            case = _of_fault(blind.fault, at, folder)
            cases.append(_outcome(case, "skipped", blind.why, blind.why, "could-not-look"))
    return cases


def _of_finding(finding: Finding, report: Report, folder: str) -> ElementTree.Element:
    case = _of_fault(finding.fault, _place(finding, report), folder)
    lines = [f"{finding.status}: {finding.title}"]
    lines += [f"at {site}: {site.code}" if site.code else f"at {site}" for site in finding.where]
    lines += [evidence.text for evidence in finding.evidence]
    lines += [f"fix: {finding.fix.summary}"] if finding.fix is not None else []
    text = "\n".join(lines)
    if finding.status == "suspected":
        ElementTree.SubElement(case, "system-out").text = _clean(text)
        return case
    return _outcome(case, "failure", finding.title, text, finding.status)


def _place(finding: Finding, report: Report) -> Site | None:
    return finding.where[0] if finding.where else _script(report)


def _script(report: Report) -> Site | None:
    """None where a subject was named by its module. `check` writes file.py:subject."""
    file, dot, ending = report.script.rpartition(".")
    ending = ending.partition(":")[0]
    return Site(f"{file}.{ending}", 1) if dot and ending in ("py", "ipynb") else None


def _of_fault(fault: str, site: Site | None, folder: str) -> ElementTree.Element:
    layer, name = fault.split(".", 1)
    return _case(layer, name, site, folder)


def _case(
    classname: str, name: str, site: Site | None, folder: str, seconds: float = 0.0
) -> ElementTree.Element:
    """The line is the one that editors show; pytest counts from 0 there."""
    place = {}
    if site is not None:
        path = PurePosixPath(folder) / site.file.replace("\\", "/")  # an absolute path stays one
        place = {"file": _clean(str(path)), "line": str(max(site.line, 1))}
    time = {"time": f"{seconds:.3f}"}
    return ElementTree.Element("testcase", {"classname": classname, "name": name, **place, **time})


def _outcome(
    case: ElementTree.Element, kind: str, message: str, text: str, why: str
) -> ElementTree.Element:
    outcome = ElementTree.SubElement(case, kind, type=why, message=_clean(message))
    outcome.text = _clean(text)
    return case


def _clean(text: str) -> str:
    """XML 1.0 has no control characters, and messages may hold any."""
    return "".join(
        c
        if c in "\n\t" or (c >= " " and c not in "\ufffe\uffff" and not "\ud800" <= c <= "\udfff")
        else "?"
        for c in text
    )
