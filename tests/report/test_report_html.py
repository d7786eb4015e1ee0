from __future__ import annotations

import dataclasses
import json
import math
import re

import numpy as np
import pytest

from sawbones.report import figures, series, write_html
from sawbones.schema import NO_GRADIENT, Ending, Explanation, Finding, Site, Size

NASTY = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


def page_of(tmp_path, report, run, sources=None) -> str:
    write_html(report, run, tmp_path / "report.html", sources)
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def without_scripts(page: str) -> str:
    return re.sub(r"<script.*?</script>", "", page, flags=re.S)


def embedded(page: str) -> dict:
    return json.loads(
        re.search(r'id="figures">(.*?)</script>', page, re.S).group(1), parse_constant=pytest.fail
    )


def test_the_page_needs_nothing_from_outside(tmp_path, sick, run, sources):
    page = page_of(tmp_path, sick, run, sources)
    assert len(page.encode()) < 400_000
    assert not re.search(
        r"""<(?:link|iframe|img)\b|<script[^>]+src|@import|url\(""", without_scripts(page)
    )


def test_every_link_has_a_target(tmp_path, sick, run, sources):
    page = without_scripts(page_of(tmp_path, sick, run, sources))
    links = re.findall(r'href="#([^"]+)"', page)
    assert {"finding-1", "finding-3", "curves", "environment"} <= set(links)
    assert set(links) <= set(re.findall(r'id="([^"]+)"', page))


def test_source_and_diff_are_shown(tmp_path, sick, run, sources):
    page = page_of(tmp_path, sick, run, sources)
    assert (
        '<span class="row hit"><span class="no">20</span>            x = layer(x)\n</span>' in page
    )
    assert '<span class="row add">+        scaler.unscale_(optimizer)\n</span>' in page
    assert '<i class="keyword">for</i> layer <i class="keyword">in</i> self.layers:' in page


def test_text_of_the_user_is_escaped_everywhere(tmp_path, sick, run):
    finding = dataclasses.replace(
        sick.findings[1],
        title=NASTY,
        where=(Site(NASTY, 1, NASTY, NASTY),),
        test=NASTY,
        experiment=NASTY,
    )
    report = dataclasses.replace(
        sick, script=NASTY, findings=(finding,), environment={NASTY: NASTY}, notes=(NASTY,)
    )
    tensors = (dataclasses.replace(run.tensors[0], name=NASTY + ".weight"), *run.tensors[1:])
    events = tuple(
        dataclasses.replace(event, site=Site(NASTY, 1, NASTY, NASTY)) for event in run.events[:800]
    )
    ending = Ending("exception", 1, NASTY, NASTY, (Site(NASTY, 1, NASTY, NASTY),))
    page = page_of(
        tmp_path,
        report,
        dataclasses.replace(run, tensors=tensors, events=events, ending=ending),
        {NASTY: NASTY},
    )
    assert "<script>alert" not in page and "<img" not in without_scripts(page)
    assert "&lt;script&gt;alert(1)" in page
    # Figures are put in as text; only the element that carries them could be left.
    assert "<" not in re.search(r'id="figures">(.*?)</script>', page, re.S).group(1)


def test_each_picture_is_there_once(tmp_path, sick, run, sources):
    found = embedded(page_of(tmp_path, sick, run, sources))
    curves = {"loss", "grad_norm", "update_ratio", "lr", "scale", "experiment-1"}
    assert set(found) == {*curves, "layers", "timeline", "influence-0"}
    assert {found[name]["kind"] for name in curves} == {"curve"}


def test_a_page_of_a_long_run_of_many_layers_stays_small(tmp_path, sick, run):
    num = 20_000
    rng = np.random.default_rng(3)
    steps = {name: rng.standard_normal(num) ** 2 for name in run.steps}
    steps |= {"step": np.arange(num, dtype=float), "optimizer": np.zeros(num)}
    tensors = tuple(
        dataclasses.replace(run.tensors[0], index=i, name=f"layers.{i}.weight") for i in range(48)
    )
    table = rng.lognormal(size=(1500, 48)).astype(np.float32)
    big = dataclasses.replace(
        run,
        steps=steps,
        tensors=tensors,
        statistics={"grad_l2": table},
        tensor_steps=np.arange(1500),
    )
    assert len(page_of(tmp_path, sick, big).encode()) < 400_000


def test_every_nan_is_marked(sick, run):
    figure = figures.curve(run, "loss", sick.findings)
    assert [group["x"] for group in figure["broken"]] == [[137, 138, 139]]
    assert figure["broken"][0]["text"] == "nan, 3 of them up to step 139"
    line = figure["lines"][0]
    assert [step for step, value in zip(line["x"], line["y"], strict=True) if value is None] == [
        137,
        138,
        139,
    ]


def test_the_steps_of_the_evidence_are_marked(sick, run):
    bands = figures.curve(run, "loss", sick.findings)["bands"]
    assert [150, 199, "1"] in bands and [137, 139, "2"] in bands and [100, 100, "1"] in bands


def test_a_long_run_is_thinned_but_keeps_its_spike_and_its_nan(run):
    num = 100_000
    loss = np.ones(num)
    loss[61_234], loss[77_777] = 9.0, math.nan
    steps = {"step": np.arange(num, dtype=float), "optimizer": np.zeros(num), "loss": loss}
    (curve,) = series.curves(dataclasses.replace(run, steps=steps), "loss")
    assert len(curve.steps) <= series.MOST_POINTS + 2
    assert curve.values[curve.steps.index(61_234)] == 9.0
    assert [mark.steps for mark in curve.broken] == [(77_777,)]


def test_two_optimizers_give_two_curves(run):
    owners = np.arange(run.num_steps) % 2
    curves = series.curves(
        dataclasses.replace(run, steps={**run.steps, "optimizer": owners.astype(float)}), "loss"
    )
    assert [curve.optimizer for curve in curves] == [0, 1]
    assert [step for curve in curves for mark in curve.broken for step in mark.steps] == [
        138,
        137,
        139,
    ]


def test_a_negative_loss_is_a_loss_and_a_lone_minus_one_is_not(run):
    def values(*loss):
        steps = {"step": np.arange(3.0), "optimizer": np.zeros(3), "loss": np.array(loss)}
        return [
            curve.values for curve in series.curves(dataclasses.replace(run, steps=steps), "loss")
        ]

    assert values(-3.0, -1.0, 2.0) == [[-3.0, -1.0, 2.0]]
    assert values(3.0, -1.0, 2.0) == [[3.0, 2.0]]


def test_no_scaler_means_no_scale_plot(tmp_path, sick, run):
    steps = {**run.steps, "scale": np.full(run.num_steps, math.nan)}
    assert "scale" not in embedded(page_of(tmp_path, sick, dataclasses.replace(run, steps=steps)))


def test_the_layer_map_tells_zero_missing_and_nonfinite_apart(run):
    found = series.layer_map(run)
    at = {name: found.special[index] for index, name in enumerate(found.layers)}
    assert at["head"][137] == series.NONFINITE_CELL and at["head"][136] is None
    assert at["layers.0.self_attn"][50] == series.ZERO_CELL
    assert set(at["unused"]) == {series.NO_GRADIENT_CELL}
    assert run.statistics["grad_l2"][0, -1] == NO_GRADIENT


def test_a_model_of_a_thousand_layers_stays_readable(run):
    tensors = tuple(
        dataclasses.replace(run.tensors[0], index=i, name=f"stage{i // 100}.block{i}.fc.weight")
        for i in range(1000)
    )
    table = np.ones((1200, 1000), np.float32)
    table[601, 999] = math.nan
    big = dataclasses.replace(
        run, tensors=tensors, statistics={"grad_l2": table}, tensor_steps=np.arange(1200)
    )
    found = series.layer_map(big)
    assert found.layers == [f"stage{i}" for i in range(10)]
    assert len(found.steps) <= series.MOST_COLUMNS
    assert found.special[9].count(series.NONFINITE_CELL) == 1


def test_a_page_without_a_run_has_no_plots_and_is_small(tmp_path, healthy):
    page = page_of(tmp_path, healthy, None)
    assert "4 checks looked over 200 steps" in page
    assert "3 checks could not look." in page
    assert len(page) < 60_000


def test_an_empty_run_makes_a_page(tmp_path, crashed, run):
    ending = Ending(
        "exception", 1, "ValueError", "bad shape", (Site("train.py", 3, "main", "x = y"),)
    )
    empty = dataclasses.replace(
        run, events=(), steps={}, tensors=(), statistics={}, deep=(), ending=ending
    )
    assert "bad shape" in page_of(tmp_path, crashed, empty)


def test_rows_of_an_influence_map_are_named_by_their_outputs(run):
    item = dataclasses.replace(
        run.deep[0].influence[0], map=((0.5, 0.5), (0.25, 0.75)), rows=(2, 5), start=1
    )
    figure = figures.influence(dataclasses.replace(item, source_shape=(32, 8)))
    assert figure["x"] == ["0–3", "4–7"] and figure["y"] == ["output 2", "output 5"]
    # Output 2 stands at source position 3: from 4 on lies its future, at the edge of the columns.
    assert figure["border"] == [1.0, 1.75]


def test_where_the_outputs_of_rows_are_not_known_none_is_claimed(run):
    item = dataclasses.replace(run.deep[0].influence[0], rows=(), outputs=((0, 1), (0, 2)))
    figure = figures.influence(item)
    assert figure["y"][0] == "probe 1" and figure["border"] == []


def test_our_own_time_is_taken_out_of_a_step(run):
    events = run.events[:12]
    without, none = figures.own_time_out(events, {})
    starts, taken = figures.own_time_out(events, {3: 6.5})
    assert none == 0 and taken == 6.5
    assert starts[3] == pytest.approx(without[3] - 6.5) and starts[2] == without[2]


def test_a_recording_without_our_own_time_shows_no_durations(run):
    assert {bar["to"] for bar in figures.timeline(run.events[:12], None)["bars"]} == {None}


def test_the_page_explains_a_crash(tmp_path, crashed, run):
    told = Explanation("10 columns", "<12>", "", (Size("hidden", "4 x 12", "line 3"),))
    found = Finding("model.width-mismatch", "proven", 0.9, "too wide", explanation=told)
    page = page_of(tmp_path, dataclasses.replace(crashed, findings=(found,)), run)
    assert "<tr><th>expected</th><td>10 columns</td></tr>" in page
    assert "<tr><th>got</th><td>&lt;12&gt;</td></tr>" in page
    assert "<code>hidden</code></td><td>4 x 12</td>" in page
