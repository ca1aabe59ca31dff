"""HTML reports in Chromium: tips, zoom, keys, phones and print."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace

import numpy as np
import pytest

import banditune as bt
from banditune.reports import svg_plots
from banditune.results.exact_results import LowerBound
from helpers.browser import CHROMIUM, Browser
from helpers.example_results import EVERY, EVIL, a_comparison, a_curve, a_tuning


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A Chromium for all tests of this file; without one they are skipped, unless that is forbidden."""
    if CHROMIUM is None:
        if os.environ.get("BANDITUNE_NEEDS_CHROMIUM") == "1":
            pytest.fail("BANDITUNE_NEEDS_CHROMIUM is set, but there is no Chromium: apt-get install chromium.")
        pytest.skip("there is no Chromium here: apt-get install chromium.")
    found = Browser(tmp_path_factory.mktemp("chromium"))
    yield found
    found.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Open a result's report in a window of some width; nothing may be fetched, nothing complained about."""

    def opener(result, width):
        bt.report(result, tmp_path / "report.html")
        browser.open(tmp_path / "report.html", width)
        return browser

    yield opener
    assert browser.requests() == []
    assert browser.complaints() == []


def centre(browser, selector):
    """Where an element is on the screen, after scrolling there."""
    code = f"""(() => {{
        const found = document.querySelector({json.dumps(selector)});
        found.scrollIntoView({{block: "center"}});
        const box = found.getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2, box.width, box.height];
    }})()"""
    return browser.run(code)


TUNED = '[data-plot="0"] .marks > .dots:last-child circle'


CURVE = '[data-plot="0"] .line path'


TIP = "document.querySelector('.tip:not([hidden])')?.textContent"


def test_the_curve_is_there_and_a_dot_tells_its_value(opened):
    browser = opened(a_tuning(), 1280)
    _, _, width, height = centre(browser, '[data-plot="0"] .band path')
    assert width > 500
    assert height > 50
    x, y, *_ = centre(browser, TUNED)
    assert browser.run(TIP) is None
    browser.mouse("mouseMoved", x, y)
    assert browser.run(TIP).startswith("tuned: 0.2222, regret ")
    browser.mouse("mouseMoved", 2, 2)
    assert browser.run(TIP) is None


def test_dragging_zooms_and_reset_goes_back(opened):
    browser = opened(a_tuning(), 1280)
    path = f"document.querySelector('{CURVE}').getAttribute('d')"
    before = browser.run(path)
    x, y, *_ = centre(browser, TUNED)
    browser.mouse("mousePressed", x - 60, y - 60)
    browser.mouse("mouseMoved", x, y)
    assert browser.run("document.querySelector('.drag').getAttribute('visibility')") == "visible"
    browser.mouse("mouseReleased", x + 60, y + 15)
    assert browser.run("document.querySelector('.drag').getAttribute('visibility')") == "hidden"
    zoomed = browser.run(path)
    assert zoomed != before
    for button in ("in", "out", "reset"):
        browser.run(f"document.querySelector('[data-zoom={button}]').click()")
        assert (browser.run(path) == before) == (button == "reset")


@pytest.mark.parametrize("axis", ["x", "y"])
def test_axes_can_be_logarithmic(opened, axis):
    browser = opened(a_tuning(), 1280)
    path = f"document.querySelector('{CURVE}').getAttribute('d')"
    before = browser.run(path)
    box = f"document.querySelector('[data-log={axis}]')"
    browser.run(f"{box}.click()")
    after = browser.run(path)
    assert after != before
    assert "NaN" not in browser.run("document.body.innerHTML")
    browser.run(f"{box}.click()")
    assert browser.run(path) == before


def test_keys_go_from_dot_to_dot(opened):
    browser = opened(a_curve(), 1280)
    browser.run("document.querySelector('.plot').focus()")
    told = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "Escape"):
        browser.ask("Input.dispatchKeyEvent", type="keyDown", key=key)
        told.append(browser.run(TIP))
    assert told[0].startswith("gamma = 0, regret")
    assert told[1].startswith("gamma = 0.03125, regret")
    assert told[2:] == [told[0], None]


@pytest.mark.parametrize("name", ["tuning", "curve", "comparison", "account of a ledger", "exact regrets", "bound"])
def test_the_script_draws_what_was_drawn_without_it(opened, name, tmp_path):
    result = EVERY[name]()
    browser = opened(result, svg_plots.PLOT_WIDTH + 40)
    still = re.findall(r'<svg class="plot".*?</svg>', (tmp_path / "report.html").read_text())
    live = browser.run("[...document.querySelectorAll('.plot')].map((plot) => plot.outerHTML)")
    assert len(still) == len(live) > 0
    for one, other in zip(still, live, strict=True):
        assert re.search('viewBox="[^"]*"', one)[0] == re.search('viewBox="[^"]*"', other)[0]
        assert re.findall(r"<text[^>]*>([^<]*)<", one) == re.findall(r"<text[^>]*>([^<]*)<", other)
        paths = [re.findall(' d="([^"]*)"', drawn) for drawn in (one, other)]
        numbers = [[float(n) for path in drawn for n in re.findall(r"-?\d+\.?\d*", path)] for drawn in paths]
        assert np.allclose(*numbers, atol=0.15)


def test_a_policy_with_a_script_for_a_name_stays_text(opened):
    for result in (a_tuning(EVIL, notices=(EVIL,)), a_comparison(EVIL)):
        browser = opened(result, 1280)
        assert EVIL in browser.run("document.body.innerText")
        assert browser.run("document.scripts.length") == 2
        assert not any(event["method"] == "Page.javascriptDialogOpening" for event in browser.events)


def test_no_other_script_can_run_and_nothing_can_be_fetched(browser, tmp_path):
    bt.report(a_curve(), tmp_path / "report.html")
    browser.open(tmp_path / "report.html", 1280)
    browser.run(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.hit = 1'}))"
    )
    assert browser.run("window.hit") is None
    code = "fetch('data:text/plain,hello').then(() => 'fetched', () => 'refused')"
    answer = browser.ask("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
    assert answer["result"]["value"] == "refused"


@pytest.mark.parametrize("width", [360, 390])
@pytest.mark.parametrize("name", ["tuning", "curve", "comparison", "account of a ledger", "exact regrets", "bound"])
def test_it_can_be_read_on_a_phone(opened, name, width):
    long = "a-policy-of-my-own-with-a-name-that-goes-on-and-on(noise=0.5)"
    browser = opened(a_comparison(EVIL, long) if name == "comparison" else EVERY[name](), width)
    assert browser.run("document.documentElement.scrollWidth") <= width
    beyond = f"""[...document.querySelectorAll('.plot text')].filter((text) => {{
        const box = text.getBoundingClientRect();
        return box.left < 0 || box.right > {width};
    }}).map((text) => text.textContent)"""
    assert browser.run(beyond) == []
    assert browser.run("parseFloat(getComputedStyle(document.querySelector('.plot text')).fontSize)") >= 12


@pytest.mark.parametrize("width", [420, 1280])
def test_no_line_goes_through_the_name_of_a_policy(opened, width):
    browser = opened(
        replace(
            a_comparison("a-policy-with-quite-a-long-name"),
            lower_bound=LowerBound(regret=3.5, is_exact=True, confidence=1.0, method="exact"),
        ),
        width,
    )
    code = """(() => {
        const plot = document.querySelector('.plot');
        const paths = [...plot.querySelectorAll('.rule path, .grid')].map((path) => path.getAttribute('d'));
        const pieces = paths.flatMap((d) => [...d.matchAll(/M([\\d.]+) ([\\d.]+)V([\\d.]+)/g)]);
        const lines = pieces.map((piece) => piece.slice(1).map(Number));
        const boxes = [...plot.querySelectorAll('.name')].map((name) => name.getBBox());
        const crossed = boxes.flatMap((box) => lines.filter(([x, top, bottom]) =>
            x > box.x && x < box.x + box.width && top < box.y + box.height - 3 && bottom > box.y + 3));
        return [lines.length, boxes.length, crossed.length];
    })()"""
    lines, names, crossed = browser.run(code)
    assert lines > names == 2
    assert crossed == 0


def test_it_can_be_printed_and_read_at_night(opened, tmp_path):
    browser = opened(a_tuning(), 1280)
    browser.printed(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    paper = "getComputedStyle(document.body).backgroundColor"
    day = browser.run(paper)
    night = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.ask("Emulation.setEmulatedMedia", features=night)
    dark = browser.run(paper)
    browser.ask("Emulation.setEmulatedMedia", features=[])
    assert day == "rgb(255, 255, 255)"
    assert dark != day
