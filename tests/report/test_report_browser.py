"""The page in a real Chromium."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from playwright.sync_api import expect

from reading_back import axis, marks
from sawbones.report import figures, write_html
from sawbones.schema import Site

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory, sick, run, sources):
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_html(sick, run, path, sources)
    return path.as_uri()


def test_all_plots_are_drawn_without_a_word_on_the_console(visit, address):
    page = visit(address)
    assert page.evaluate("document.body.dataset.drawn") == "9"
    assert page.locator(".plot > svg").count() == 9
    assert page.trouble == []


@pytest.mark.parametrize("column", ["loss", "grad_norm", "lr", "scale"])
def test_curves_stand_where_their_numbers_are(visit, address, run, column):
    page = visit(address)
    pressed = page.locator(f"#plot-{column} .tools button").first.get_attribute("aria-pressed")
    seen = marks(page, column)
    to_x, to_y = axis(seen["x"]), axis(seen["y"], log=pressed == "true")
    values = run.steps[column]
    known = [(s, v) for s, v in zip(run.steps["step"], values, strict=True) if np.isfinite(v)]
    ((_, points),) = seen["lines"]
    assert len(points) == len(known)
    low, high = min(v for _, v in known), max(v for _, v in known)
    for (x, y), (step, value) in zip(points, known, strict=True):
        assert to_x(x) == pytest.approx(step, abs=0.3)
        close = {"rel": 0.02} if pressed == "true" else {"abs": 0.01 * (high - low)}
        assert to_y(y) == pytest.approx(value, **close)


def test_a_constant_learning_rate_is_drawn_at_its_value(visit, tmp_path, sick, run):
    steps = {**run.steps, "lr": np.full(run.num_steps, 1e-3)}
    write_html(sick, dataclasses.replace(run, steps=steps), tmp_path / "r.html")
    seen = marks(visit((tmp_path / "r.html").as_uri()), "lr")
    to_y = axis(seen["y"])
    assert {round(to_y(y), 6) for _, y in seen["lines"][0][1]} == {0.001}
    assert all(0 < float(text) < 0.01 for text, _ in seen["y"])


def test_nan_steps_are_crosses_and_evidence_is_a_band(visit, address):
    seen = marks(visit(address), "loss")
    to_x = axis(seen["x"])
    assert [round(to_x(x)) for x in seen["crosses"]] == [137, 138, 139]
    bands = {(round(to_x(x), 0), round(to_x(x + width), 0)) for x, width in seen["bands"]}
    assert any(a in (149, 150) and b in (199, 200) for a, b in bands)


def test_the_experiment_is_shown_as_two_curves(visit, address, sick):
    seen = marks(visit(address), "experiment-1")
    to_x, to_y = axis(seen["x"]), axis(seen["y"], log=True)
    wanted = sick.findings[0].verdict.details["curves"]
    assert [name for name, _ in seen["lines"]] == [curve["name"] for curve in wanted]
    for (_, points), curve in zip(seen["lines"], wanted, strict=True):
        known = [
            (s, v) for s, v in zip(curve["steps"], curve["losses"], strict=True) if v is not None
        ]
        assert [round(to_x(x)) for x, _ in points] == [step for step, _ in known]
        for (_, y), (_, loss) in zip(points, known, strict=True):
            assert to_y(y) == pytest.approx(loss, rel=0.03)
    assert [round(to_x(x)) for x in seen["crosses"]] == [30]


def test_cells_of_the_layer_map_have_the_shade_of_their_number(visit, address, run):
    seen = marks(visit(address), "layers")
    figure = figures.layers(run)
    low, high = figure["low"], figure["high"]
    rows, columns = len(figure["y"]), len(figure["x"])
    every = [point for _, points in seen["cells"] for point in points]
    left, height = min(x for x, _ in every), seen["y"][1][1] - seen["y"][0][1]
    width = (max(x for x, _ in every) - left) / (columns - 1)
    shown = {}
    for level, points in seen["cells"]:
        for x, y in points:
            shown[round(y / height), round((x - left) / width)] = level
    assert len(shown) == rows * columns
    for (row, column), level in shown.items():
        mark, value = figure["marks"][row][column], figure["z"][row][column]
        if mark is not None:
            assert level == f"m{mark}"
        else:
            share = 24 * (value - low) / (high - low)
            assert share - 1.001 <= int(level) <= share + 0.001


def test_the_future_begins_behind_each_output_of_an_influence_map(visit, address, run):
    seen = marks(visit(address), "influence-0")
    item = run.deep[1].influence[0]
    assert [text for text, _ in seen["y"]] == [f"output {p}" for p in item.rows]
    every = [point for _, points in seen["cells"] for point in points]
    left = min(x for x, _ in every)
    width = (max(x for x, _ in every) - left) / (item.source_shape[1] - 1)
    (border,) = seen["border"]
    assert [round((x - left) / width) for x, _ in border] == [p + 1 for p in item.rows]


def test_bars_of_a_step_last_until_the_next_event_without_our_time(visit, address):
    seen = marks(visit(address), "timeline")
    to_x = axis(seen["x"])
    starts = [to_x(x) for x, _, _ in seen["bars"]]
    assert starts[:6] == pytest.approx([0, 9.0, 9.4, 33.9, 35.4, 35.5], abs=0.4)
    assert to_x(seen["bars"][2][0] + seen["bars"][2][2]) == pytest.approx(33.9, abs=0.4)


def test_keys_move_a_cursor_that_says_its_numbers_and_zoom(visit, address, run):
    page = visit(address)
    plot = page.locator("#plot-lr")
    plot.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    said = plot.locator(".tip").inner_text().split("\n")
    assert said[0] == "step 1" and float(said[1].split()[1]) == pytest.approx(run.steps["lr"][1])
    assert plot.locator(".tip").get_attribute("role") == "status"
    page.keyboard.press("+")
    assert float(marks(page, "loss")["x"][-1][0]) < 150  # all curves over steps zoom together
    page.keyboard.press("Escape")
    assert float(marks(page, "loss")["x"][-1][0]) >= 150
    page.keyboard.press("l")
    assert plot.locator("button").first.get_attribute("aria-pressed") == "true"
    assert "goes from" in page.locator("#plot-loss").get_attribute("aria-label")


def test_dragging_zooms_and_a_double_click_ends_it(visit, address):
    page = visit(address)
    page.locator("#plot-loss").scroll_into_view_if_needed()
    box = page.locator("#plot-loss").bounding_box()
    before = marks(page, "loss")["x"]
    page.mouse.move(box["x"] + 150, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 250, box["y"] + 100)
    page.mouse.up()
    to_x = axis(before)
    first, last = (
        (float(text) for text, _ in marks(page, "loss")["x"][:: len(before) or 1][:2] or ())
        if False
        else (float(marks(page, "loss")["x"][0][0]), float(marks(page, "loss")["x"][-1][0]))
    )
    assert to_x(150) - 1 <= first < last <= to_x(250) + 1
    page.mouse.dblclick(box["x"] + 200, box["y"] + 100)
    assert marks(page, "loss")["x"] == before


def test_a_patch_is_copied_as_it_applies(visit, address, sick):
    page = visit(address, permissions=["clipboard-read", "clipboard-write"])
    page.locator("#finding-1 figure.diff .copy").click()
    expect(page.locator("#finding-1 figure.diff .copy")).to_have_text("copied")
    assert page.evaluate("navigator.clipboard.readText()") == sick.findings[0].fix.patch


def test_the_page_is_drawn_within_a_second(visit, address):
    page = visit(address)
    timing = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert timing < 1000


def test_links_lead_to_what_they_name(visit, address):
    page = visit(address)
    for link in page.locator("header a, nav a").all():
        target = link.get_attribute("href")
        page.evaluate("scrollTo(0, 0)")
        link.click()
        top = page.locator(target).bounding_box()["y"]
        at_the_end = page.evaluate(
            "innerHeight + scrollY >= document.documentElement.scrollHeight - 2"
        )
        assert 0 <= top < 120 or (at_the_end and 0 <= top < 844), target


def test_a_phone_needs_no_sideways_scrolling(visit, address):
    page = visit(address, width=390, has_touch=True, is_mobile=True)
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert (
        page.evaluate(
            "Math.max(...[...document.querySelectorAll('.plot')].map(p => "
            "p.getBoundingClientRect().right))"
        )
        <= 390
    )
    assert page.trouble == []


def test_the_page_follows_the_screen_into_the_dark(visit, address):
    page = visit(address)
    line, body = page.locator("#plot-loss path.line").first, page.locator("body")
    stroke, ground = (
        item.evaluate("e => [getComputedStyle(e).stroke, getComputedStyle(e).backgroundColor]")
        for item in (line, body)
    )
    page.emulate_media(color_scheme="dark")
    expect(line).not_to_have_css("stroke", stroke[0])
    expect(body).not_to_have_css("background-color", ground[1])
    assert page.trouble == []


def test_nasty_text_is_shown_and_not_run(visit, tmp_path, sick, run):
    nasty = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    finding = dataclasses.replace(
        sick.findings[0], title=nasty, where=(Site("train.py", 1, nasty, nasty),)
    )
    tensors = (dataclasses.replace(run.tensors[0], name=nasty + ".weight"), *run.tensors[1:])
    write_html(
        dataclasses.replace(sick, findings=(finding,)),
        dataclasses.replace(run, tensors=tensors),
        tmp_path / "r.html",
    )
    page = visit((tmp_path / "r.html").as_uri())
    assert page.locator("#finding-1 h3").inner_text().endswith(nasty)
    assert page.locator("img").count() == 0
    assert page.trouble == []


def test_the_browser_refuses_a_script_that_is_not_ours(visit, tmp_path, address, sick, run):
    write_html(sick, run, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    (tmp_path / "r.html").write_text(
        text.replace('id="content">', 'id="content"><script>alert(3)</script>', 1), encoding="utf-8"
    )
    page = visit((tmp_path / "r.html").as_uri())
    assert len(page.trouble) == 1 and "Content Security Policy" in page.trouble[0]
