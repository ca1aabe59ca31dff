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
from helpers.example_results import RESULTS, SCRIPT_NAME, make_comparison, make_curve, make_tuning


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A Chromium for all tests of this file. Without one they are skipped, unless that is forbidden."""
    if CHROMIUM is None:
        if os.environ.get("BANDITUNE_NEEDS_CHROMIUM") == "1":
            pytest.fail("BANDITUNE_NEEDS_CHROMIUM is set, but there is no Chromium: apt-get install chromium.")
        pytest.skip("there is no Chromium here: apt-get install chromium.")
    chromium = Browser(tmp_path_factory.mktemp("chromium"))
    yield chromium
    chromium.close()


@pytest.fixture
def open_report(browser, tmp_path):
    """Open the report of a result in a window of some width. Nothing may be loaded, and nothing reported."""

    def open_result(result, width):
        bt.report(result, tmp_path / "report.html")
        browser.open(tmp_path / "report.html", width)
        return browser

    yield open_result
    assert browser.list_requests() == []
    assert browser.list_messages() == []


def find_centre(browser, selector):
    """The position and the size of an element on the screen, after scrolling to it."""
    code = f"""(() => {{
        const element = document.querySelector({json.dumps(selector)});
        element.scrollIntoView({{block: "center"}});
        const box = element.getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2, box.width, box.height];
    }})()"""
    return browser.evaluate(code)


TUNED_DOT = '[data-plot="0"] .marks > .dots:last-child circle'


CURVE_PATH = '[data-plot="0"] .line path'


TIP = "document.querySelector('.tip:not([hidden])')?.textContent"


def test_a_dot_of_the_curve_shows_its_value(open_report):
    browser = open_report(make_tuning(), 1280)
    _, _, width, height = find_centre(browser, '[data-plot="0"] .band path')
    assert width > 500
    assert height > 50
    x, y, *_ = find_centre(browser, TUNED_DOT)
    assert browser.evaluate(TIP) is None
    browser.send_mouse_event("mouseMoved", x, y)
    assert browser.evaluate(TIP).startswith("tuned: 0.2222, regret ")
    browser.send_mouse_event("mouseMoved", 2, 2)
    assert browser.evaluate(TIP) is None


def test_dragging_zooms_and_reset_restores_the_plot(open_report):
    browser = open_report(make_tuning(), 1280)
    path = f"document.querySelector('{CURVE_PATH}').getAttribute('d')"
    before = browser.evaluate(path)
    x, y, *_ = find_centre(browser, TUNED_DOT)
    browser.send_mouse_event("mousePressed", x - 60, y - 60)
    browser.send_mouse_event("mouseMoved", x, y)
    assert browser.evaluate("document.querySelector('.drag').getAttribute('visibility')") == "visible"
    browser.send_mouse_event("mouseReleased", x + 60, y + 15)
    assert browser.evaluate("document.querySelector('.drag').getAttribute('visibility')") == "hidden"
    zoomed = browser.evaluate(path)
    assert zoomed != before
    for button in ("in", "out", "reset"):
        browser.evaluate(f"document.querySelector('[data-zoom={button}]').click()")
        assert (browser.evaluate(path) == before) == (button == "reset")


@pytest.mark.parametrize("axis", ["x", "y"])
def test_axes_can_be_logarithmic(open_report, axis):
    browser = open_report(make_tuning(), 1280)
    path = f"document.querySelector('{CURVE_PATH}').getAttribute('d')"
    before = browser.evaluate(path)
    box = f"document.querySelector('[data-log={axis}]')"
    browser.evaluate(f"{box}.click()")
    after = browser.evaluate(path)
    assert after != before
    assert "NaN" not in browser.evaluate("document.body.innerHTML")
    browser.evaluate(f"{box}.click()")
    assert browser.evaluate(path) == before


def test_keys_move_from_dot_to_dot(open_report):
    browser = open_report(make_curve(), 1280)
    browser.evaluate("document.querySelector('.plot').focus()")
    tips = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "Escape"):
        browser.send_command("Input.dispatchKeyEvent", type="keyDown", key=key)
        tips.append(browser.evaluate(TIP))
    assert tips[0].startswith("gamma = 0, regret")
    assert tips[1].startswith("gamma = 0.03125, regret")
    assert tips[2:] == [tips[0], None]


@pytest.mark.parametrize("name", ["tuning", "curve", "comparison", "summary of a store", "exact regrets", "bound"])
def test_the_script_draws_the_same_plot(open_report, name, tmp_path):
    result = RESULTS[name]()
    browser = open_report(result, svg_plots.PLOT_WIDTH + 40)
    written = re.findall(r'<svg class="plot".*?</svg>', (tmp_path / "report.html").read_text())
    drawn_by_script = browser.evaluate("[...document.querySelectorAll('.plot')].map((plot) => plot.outerHTML)")
    assert len(written) == len(drawn_by_script) > 0
    for expected, drawn in zip(written, drawn_by_script, strict=True):
        assert re.search('viewBox="[^"]*"', expected)[0] == re.search('viewBox="[^"]*"', drawn)[0]
        assert re.findall(r"<text[^>]*>([^<]*)<", expected) == re.findall(r"<text[^>]*>([^<]*)<", drawn)
        paths = [re.findall(' d="([^"]*)"', plots) for plots in (expected, drawn)]
        numbers = [[float(n) for path in plots for n in re.findall(r"-?\d+\.?\d*", path)] for plots in paths]
        assert np.allclose(*numbers, atol=0.15)


def test_a_script_as_a_name_is_not_run(open_report):
    for result in (make_tuning(SCRIPT_NAME, notices=(SCRIPT_NAME,)), make_comparison(SCRIPT_NAME)):
        browser = open_report(result, 1280)
        assert SCRIPT_NAME in browser.evaluate("document.body.innerText")
        assert browser.evaluate("document.scripts.length") == 2
        assert not any(event["method"] == "Page.javascriptDialogOpening" for event in browser.events)


def test_no_other_script_runs_and_nothing_is_loaded(browser, tmp_path):
    bt.report(make_curve(), tmp_path / "report.html")
    browser.open(tmp_path / "report.html", 1280)
    browser.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.hit = 1'}))"
    )
    assert browser.evaluate("window.hit") is None
    code = "fetch('data:text/plain,hello').then(() => 'fetched', () => 'refused')"
    answer = browser.send_command("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
    assert answer["result"]["value"] == "refused"


@pytest.mark.parametrize("width", [360, 390])
@pytest.mark.parametrize("name", ["tuning", "curve", "comparison", "summary of a store", "exact regrets", "bound"])
def test_the_page_can_be_read_on_a_phone(open_report, name, width):
    long = "a-policy-of-my-own-with-a-name-that-goes-on-and-on(noise=0.5)"
    browser = open_report(make_comparison(SCRIPT_NAME, long) if name == "comparison" else RESULTS[name](), width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    beyond = f"""[...document.querySelectorAll('.plot text')].filter((text) => {{
        const box = text.getBoundingClientRect();
        return box.left < 0 || box.right > {width};
    }}).map((text) => text.textContent)"""
    assert browser.evaluate(beyond) == []
    assert browser.evaluate("parseFloat(getComputedStyle(document.querySelector('.plot text')).fontSize)") >= 12


@pytest.mark.parametrize("width", [420, 1280])
def test_no_line_crosses_the_name_of_a_policy(open_report, width):
    browser = open_report(
        replace(
            make_comparison("a-policy-with-quite-a-long-name"),
            lower_bound=LowerBound(regret=3.5, is_exact=True, confidence=1.0, method="exact"),
        ),
        width,
    )
    code = """(() => {
        const plot = document.querySelector('.plot');
        const paths = [...plot.querySelectorAll('.vertical path, .grid')].map((path) => path.getAttribute('d'));
        const pieces = paths.flatMap((d) => [...d.matchAll(/M([\\d.]+) ([\\d.]+)V([\\d.]+)/g)]);
        const lines = pieces.map((piece) => piece.slice(1).map(Number));
        const boxes = [...plot.querySelectorAll('.name')].map((name) => name.getBBox());
        const crossed = boxes.flatMap((box) => lines.filter(([x, top, bottom]) =>
            x > box.x && x < box.x + box.width && top < box.y + box.height - 3 && bottom > box.y + 3));
        return [lines.length, boxes.length, crossed.length];
    })()"""
    lines, names, crossed = browser.evaluate(code)
    assert lines > names == 2
    assert crossed == 0


def test_the_page_can_be_printed_and_has_a_dark_mode(open_report, tmp_path):
    browser = open_report(make_tuning(), 1280)
    browser.save_pdf(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    paper = "getComputedStyle(document.body).backgroundColor"
    day = browser.evaluate(paper)
    night = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.send_command("Emulation.setEmulatedMedia", features=night)
    dark = browser.evaluate(paper)
    browser.send_command("Emulation.setEmulatedMedia", features=[])
    assert day == "rgb(255, 255, 255)"
    assert dark != day
