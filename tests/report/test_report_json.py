from __future__ import annotations

import copy
import dataclasses
import json
import math

import jsonschema
import numpy as np
import pytest

from sawbones.report import exit_code, from_json, report_schema, to_json, write_json
from sawbones.report.json_report import ReportNotReadable
from sawbones.schema import VERDICTS, Explanation, Finding, Report, Site, Size


def validate(document: dict) -> None:
    jsonschema.Draft202012Validator(report_schema()).validate(document)


def through_text(report: Report) -> dict:
    """As a reader gets it: written out and parsed by a parser that knows no NaN."""
    return json.loads(json.dumps(to_json(report), allow_nan=False), parse_constant=pytest.fail)


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(report_schema())


@pytest.mark.parametrize("name", VERDICTS)
def test_every_report_follows_the_contract(name, request):
    document = through_text(request.getfixturevalue(name))
    validate(document)
    assert document["verdict"] == name


def test_a_patched_report_follows_the_contract(sick):
    document = through_text(sick)
    validate(document)
    fixes = [finding["fix"] for finding in document["findings"]]
    assert fixes[0]["patch"].startswith("--- a/train.py\n")
    assert [fix["level"] for fix in fixes] == ["verified", "unsafe", "display"]


def test_nonfinite_numbers_survive_as_strings(sick):
    evidence = through_text(sick)["findings"][1]["evidence"]
    assert [item["value"] for item in evidence] == [65536.0, "nan", "inf"]


def test_symptoms_survive_with_their_class(unexplained):
    document = through_text(unexplained)
    assert [item["class"] for item in document["symptoms"]] == ["ill", "notable"]
    assert document["symptoms"][1]["value"] == "nan"
    assert repr(from_json(document)) == repr(unexplained)


def test_reading_back_gives_the_same_report(sick):
    again = from_json(through_text(sick))
    # NaN is not equal to itself, so the comparison goes by repr; lists in free mappings stay lists.
    assert repr(again) == repr(sick)
    assert math.isnan(again.findings[1].evidence[1].value)
    assert again.findings[1].evidence[2].value == math.inf


def test_a_written_file_reads_back(sick, tmp_path):
    write_json(sick, tmp_path / "report.json")
    assert repr(
        from_json(json.loads((tmp_path / "report.json").read_text(encoding="utf-8")))
    ) == repr(sick)


def test_measurements_of_any_kind_are_written(sick):
    params = {
        "grad": np.float32("inf"),
        "rows": np.array([1.0, np.nan]),
        "site": Site("a.py", 3),
        5: {1, 2},
        "what": object,
    }
    finding = dataclasses.replace(sick.findings[0], params=params)
    document = through_text(dataclasses.replace(sick, findings=(finding,)))
    written = document["findings"][0]["params"]
    assert written["grad"] == "inf"
    assert written["rows"] == [1.0, "nan"]
    assert written["site"]["line"] == 3
    assert written["5"] == [1, 2]
    assert from_json(document).findings[0].params["grad"] == math.inf


def test_the_environment_keeps_its_text(healthy):
    report = dataclasses.replace(healthy, environment={"answer": "nan"})
    assert from_json(through_text(report)).environment == {"answer": "nan"}


def test_exit_codes(sick):
    codes = {name: exit_code(dataclasses.replace(sick, verdict=name)) for name in VERDICTS}
    expected = {"crashed": 3, "sick": 1, "unexplained": 1, "inconclusive": 4, "healthy": 0}
    assert codes == expected
    with pytest.raises(ReportNotReadable, match="poorly"):
        exit_code(dataclasses.replace(sick, verdict="poorly"))


def test_further_keys_are_allowed(sick):
    document = through_text(sick) | {"mood": "grim"}
    document["findings"][0]["colour"] = "red"
    validate(document)
    assert from_json(document).verdict == "sick"


BREAKAGES = {
    "unknown verdict": lambda d: d.update(verdict="poorly"),
    "unknown status": lambda d: d["findings"][0].update(status="certain"),
    "unknown outcome": lambda d: d["findings"][0]["experiment"].update(outcome="maybe"),
    "confidence in percent": lambda d: d["findings"][0].update(confidence=98),
    "missing fix": lambda d: d["findings"][0].pop("fix"),
    "missing environment": lambda d: d.pop("environment"),
    "value in words": lambda d: d["findings"][0]["evidence"][0].update(value="large"),
    "fault without layer": lambda d: d["findings"][0].update(fault="causal-leak"),
    "title of two lines": lambda d: d["findings"][0].update(title="one\ntwo"),
    "healthy with a proven fault": lambda d: d.update(verdict="healthy"),
    "inconclusive with a proven fault": lambda d: d.update(verdict="inconclusive"),
    "unexplained without an illness": lambda d: d.update(verdict="unexplained", findings=[]),
    "healthy with an illness": lambda d: d.update(
        verdict="healthy",
        findings=[],
        symptoms=[
            {
                "symptom": "diverges",
                "class": "ill",
                "text": "the loss grows",
                "value": 9.0,
                "expected": 1.0,
                "steps": [],
                "explained_by": None,
            }
        ],
    ),
    "a fix without a level": lambda d: d["findings"][0]["fix"].pop("level"),
    "sick of suspicions": lambda d: d.update(findings=d["findings"][2:]),
    "blind without a reason": lambda d: d["could_not_look"].append({"fault": "loss.label-shift"}),
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_the_schema_refuses(name, sick):
    document = copy.deepcopy(through_text(sick))
    BREAKAGES[name](document)
    with pytest.raises(jsonschema.ValidationError):
        validate(document)


def test_reading_says_what_is_missing(sick):
    document = through_text(sick)
    del document["findings"][0]["evidence"]
    with pytest.raises(ReportNotReadable, match="no 'evidence'"):
        from_json(document)
    with pytest.raises(ReportNotReadable, match="schema 1"):
        from_json({"schema": 1})


def test_the_explanation_of_a_crash_survives_and_follows_the_schema(crashed):
    told = Explanation(
        "10 columns", "12", "hidden is 4 x 12", (Size("hidden", "4 x 12", "line 3"),)
    )
    found = Finding("model.width-mismatch", "proven", 0.9, "too wide", explanation=told)
    document = through_text(dataclasses.replace(crashed, findings=(found,)))
    validate(document)
    assert from_json(document).findings[0].explanation == told
