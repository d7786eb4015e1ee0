"""The page in a real Chromium."""

from __future__ import annotations

import dataclasses
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

from sawbones.report import write_html
from sawbones.schema import Site

pytestmark = pytest.mark.browser
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="module")
def browser():
    found = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if found is None:
        pytest.skip("no Chromium on this machine")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory, sick, run, sources):
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_html(sick, run, path, sources)
    return path.as_uri()


@pytest.fixture
def visit(browser):
    """Opens an address and collects what must not happen: errors, and requests for anything but the
    file itself.
    """
    contexts = []

    def opened(address, width=1200, **settings):
        context = browser.new_context(
            viewport={"width": width, "height": 844}, reduced_motion="reduce", **settings
        )
        contexts.append(context)
        page = context.new_page()
        page.trouble = []
        page.on(
            "console",
            lambda message: (
                page.trouble.append(message.text) if message.type in ("error", "warning") else None
            ),
        )
        page.on("pageerror", lambda error: page.trouble.append(str(error)))
        page.on(
            "request",
            lambda r: page.trouble.append(r.url) if r.url.startswith(("http", "ws")) else None,
        )
        page.on(
            "dialog",
            lambda dialog: (page.trouble.append("dialog " + dialog.message), dialog.dismiss()),
        )
        page.goto(address)
        page.wait_for_selector("body[data-drawn]", timeout=60_000)
        return page

    yield opened
    for context in contexts:
        context.close()


def test_all_plots_are_drawn_without_a_word_on_the_console(visit, address):
    page = visit(address)
    assert page.evaluate("document.body.dataset.drawn") == "8"
    assert page.locator(".plot .main-svg").count() >= 8
    for name in ("loss", "grad_norm", "update_ratio", "lr", "scale"):
        line = page.locator(f"#plot-{name} .scatterlayer path.js-line").first
        assert line.bounding_box()["width"] > 100, name
    assert page.locator("#plot-layers .heatmaplayer image").count() == 2
    assert page.locator("#plot-influence-0 .heatmaplayer image").count() == 1
    assert page.locator("#plot-timeline .bars path").count() == 12
    assert page.trouble == []


def test_nan_steps_are_visible_crosses(visit, address):
    crosses = visit(address).locator("#plot-loss .scatterlayer .points path")
    assert crosses.count() == 3
    assert all(crosses.nth(index).bounding_box()["width"] > 4 for index in range(3))


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
    line, body = page.locator("#plot-loss path.js-line").first, page.locator("body")
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
        text.replace("<main>", "<main><script>alert(3)</script>", 1), encoding="utf-8"
    )
    page = visit((tmp_path / "r.html").as_uri())
    assert len(page.trouble) == 1 and "Content Security Policy" in page.trouble[0]
