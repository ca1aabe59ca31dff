"""The site is built without errors, needs no other host, and every page can be reached and has a description."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from helpers.browser import CHROMIUM, Browser
from helpers.paths import ROOT

LOADING = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
}
"""Elements that load what they name. So do links with these relations:"""
LOADING_LINKS = {"stylesheet", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload", "manifest"}
STYLE_ADDRESS = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class Page(HTMLParser):
    """What a built page links to and loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: set[str] = set()
        self.description = ""
        self.title = ""
        self.in_title = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.names |= {found[key] for key in ("id", "name") if found.get(key)}
        self.in_title = tag == "title"
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if found.get(LOADING.get(tag, "")):
            self.loaded.append(found[LOADING[tag]])
        if tag == "link" and LOADING_LINKS & set((found.get("rel") or "").split()):
            self.loaded.append(found["href"])
        if tag == "meta" and found.get("name") == "description":
            self.description = found["content"]

    def handle_data(self, data):
        self.title += data if self.in_title and not self.title else ""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    process = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "WARNING" not in process.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    """The pages of the site, by their paths."""
    found = {path: Page(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    assert len(found) >= 40
    return found


def find_target(page: Path, link: str) -> tuple[Path, str]:
    """The file and the name within it to which a link goes."""
    parts = urlsplit(link)
    path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    return (path / "index.html" if path.is_dir() else path), unquote(parts.fragment)


def is_local(address: str) -> bool:
    return not urlsplit(address).scheme and not address.startswith("//")


def test_nothing_is_loaded_from_other_hosts(site, pages):
    loaded = [(path.name, address) for path, page in pages.items() for address in page.loaded]
    assert len(loaded) > 100
    assert [one for one in loaded if not is_local(one[1]) and not one[1].startswith("data:")] == []
    styles = sorted(site.rglob("*.css"))
    assert styles != []
    addresses = [first or second for path in styles for first, second in STYLE_ADDRESS.findall(path.read_text())]
    assert [address for address in addresses if not is_local(address) and not address.startswith("data:")] == []


def test_every_page_can_be_reached_from_the_home_page(site, pages):
    home = site / "index.html"
    seen, waiting = {home}, [home]
    while waiting:
        page = waiting.pop()
        for link in filter(is_local, pages[page].links):
            target, _ = find_target(page, link)
            if target in pages and target not in seen:
                seen.add(target)
                waiting.append(target)
    assert [path.relative_to(site).as_posix() for path in pages if path not in seen] == []


def test_no_link_is_broken(site, pages):
    broken, checked = [], 0
    for path, page in pages.items():
        for link in filter(is_local, page.links):
            target, name = find_target(path, link)
            checked += 1
            if not target.exists() or (name and target in pages and name not in pages[target].names):
                broken.append((path.relative_to(site).as_posix(), link))
    assert checked > 1000
    assert broken == []


def test_every_page_has_a_title_and_a_description(site, pages):
    descriptions = {path.relative_to(site).as_posix(): page.description for path, page in pages.items()}
    assert [path for path, description in descriptions.items() if not description.endswith(".")] == []
    assert len(set(descriptions.values())) == len(descriptions)
    titles = [page.title.strip() for page in pages.values()]
    assert len(set(titles)) == len(titles)


def test_the_page_for_language_models_lists_every_page(site, pages):
    lines = (site / "llms.txt").read_text().splitlines()
    assert lines[0] == "# banditune"
    listed = [re.search(r"\]\(([^)]+)\): .+\.$", line)[1] for line in lines if line.startswith("- ")]
    assert sorted(listed) == sorted(path.relative_to(site).as_posix() for path in pages)


def test_pictures_are_small_and_shown(site, pages):
    shown = {
        find_target(path, address)[0] for path, page in pages.items() for address in page.loaded if "images/" in address
    }
    assert len(shown) >= 10
    assert [path.name for path in shown if not path.exists()] == []
    stored = set((ROOT / "docs" / "images").iterdir())
    assert {path.name for path in stored} - {path.name for path in shown} == set()
    assert [path.name for path in stored if path.stat().st_size > 250_000] == []


SEARCH = """new Promise(resolve => {
    const query = document.querySelector("[data-md-component=search-query]");
    query.focus();
    query.value = "Gittins";
    query.dispatchEvent(new Event("keyup"));
    const wait = setInterval(() => {
        const links = document.querySelectorAll("[data-md-component=search-result] a");
        if (links.length) { clearInterval(wait); resolve(links.length); }
    }, 50);
})"""


@pytest.fixture
def browser(tmp_path):
    """A Chromium; without one the test is skipped, unless that is forbidden."""
    if CHROMIUM is None:
        if os.environ.get("BANDITUNE_NEEDS_CHROMIUM") == "1":
            pytest.fail("BANDITUNE_NEEDS_CHROMIUM is set, but there is no Chromium: apt-get install chromium.")
        pytest.skip("there is no Chromium here: apt-get install chromium.")
    found = Browser(tmp_path)
    yield found
    found.close()


def test_pages_work_in_a_browser_without_a_network(site, browser):
    browser.open(site / "index.html", 1280)
    answer = browser.send_command("Runtime.evaluate", expression=SEARCH, returnByValue=True, awaitPromise=True)
    assert answer["result"]["value"] > 2
    wrong = []
    for page in ("index.html", "choose.html", "reference/commands.html", "notebooks/logs-to-production.html"):
        browser.open(site / page, 390)
        asked = [address for address in browser.list_requests() if not address.startswith(("file:", "data:", "about:"))]
        wide = browser.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        wrong += [(page, complaint) for complaint in [*asked, *browser.list_messages()]] + [(page, wide)] * (wide > 1)
    assert wrong == []
