"""Report -> JUnit XML: one suite per layer, one case per fault that was looked at. CI systems show
it as tests.
"""

from __future__ import annotations

from xml.etree import ElementTree

from sawbones.schema import LAYERS, Finding, Report


def to_junit(report: Report) -> str:
    """Likely and proven findings fail, suspected ones are in the output of a passing case, what
    could not be seen is skipped.
    """
    root = ElementTree.Element(
        "testsuites", name=f"sawbones {report.script}", time=f"{report.seconds:.3f}"
    )
    for layer in LAYERS:
        cases = _cases(report, layer)
        if not cases:
            continue
        failed, skipped = (
            sum(case.find(kind) is not None for case in cases) for kind in ("failure", "skipped")
        )
        counts = {
            "name": layer,
            "tests": str(len(cases)),
            "failures": str(failed),
            "errors": "0",
            "skipped": str(skipped),
        }
        ElementTree.SubElement(root, "testsuite", counts).extend(cases)
    if report.verdict in ("crashed", "unexplained", "inconclusive"):
        root.append(_subject(report))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _subject(report: Report) -> ElementTree.Element:
    """A verdict that no finding stands for: an illness without a cause fails, a crash and a run
    that could not be judged are errors.
    """
    kind = "failure" if report.verdict == "unexplained" else "error"
    counts = {"name": "subject", "tests": "1", "failures": "0", "errors": "0", "skipped": "0"}
    suite = ElementTree.Element("testsuite", {**counts, f"{kind}s": "1"})
    case = ElementTree.SubElement(suite, "testcase", classname="subject", name="runs", time="0")
    ill = [symptom.text for symptom in report.symptoms if symptom.stands]
    told = "; ".join([*ill, *report.notes]) or report.verdict
    ElementTree.SubElement(case, kind, message=_clean(told))
    return suite


def _cases(report: Report, layer: str) -> list[ElementTree.Element]:
    cases = []
    for finding in report.findings:
        if finding.fault.startswith(f"{layer}."):
            cases.append(_of_finding(finding))
    for fault in report.looked:
        if fault.startswith(f"{layer}."):
            cases.append(_case(fault))
    for blind in report.could_not_look:
        if blind.fault.startswith(f"{layer}."):
            case = _case(blind.fault)
            ElementTree.SubElement(case, "skipped", message=_clean(blind.why))
            cases.append(case)
    return cases


def _case(fault: str) -> ElementTree.Element:
    layer, name = fault.split(".", 1)
    return ElementTree.Element("testcase", classname=layer, name=name, time="0")


def _of_finding(finding: Finding) -> ElementTree.Element:
    case = _case(finding.fault)
    lines = [f"{finding.status}: {finding.title}"]
    lines += [f"at {site}: {site.code}" if site.code else f"at {site}" for site in finding.where]
    lines += [evidence.text for evidence in finding.evidence]
    lines += [f"fix: {finding.fix.summary}"] if finding.fix is not None else []
    if finding.status == "suspected":
        ElementTree.SubElement(case, "system-out").text = _clean("\n".join(lines))
    else:
        failure = ElementTree.SubElement(
            case, "failure", message=_clean(finding.title), type=finding.status
        )
        failure.text = _clean("\n".join(lines))
    return case


def _clean(text: str) -> str:
    """XML 1.0 has no control characters, and messages may hold any."""
    return "".join(
        c
        if c in "\n\t" or (c >= " " and c not in "\ufffe\uffff" and not "\ud800" <= c <= "\udfff")
        else "?"
        for c in text
    )
