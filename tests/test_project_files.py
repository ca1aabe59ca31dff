"""Files for contributors and for a release agree with the package and with each other."""

from __future__ import annotations

import re
import subprocess
import tomllib

import pytest
import yaml

import banditune as bt
from helpers.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
GUIDES = ["CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md"]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


def list_tracked():
    """Files of the repository; those of a source archive where there is none."""
    process = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    names = process.stdout.split() if process.returncode == 0 else []
    return [ROOT / name for name in names] or [path for path in ROOT.rglob("*") if ".venv" not in path.parts]


def test_every_file_has_the_version_of_the_package():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == bt.__version__
    assert re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0] == bt.__version__
    assert f"Version {bt.__version__}}}" in (ROOT / "docs" / "how-to" / "write-up.md").read_text()


def test_the_page_on_papers_cites_what_the_citation_file_cites():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    page = (ROOT / "docs" / "how-to" / "write-up.md").read_text()
    (paper,) = citation["references"]
    assert citation["title"] in page
    assert paper["title"] in page.replace("{Bayes}", "Bayes")
    assert paper["identifiers"][0]["value"] in page
    assert [author["family-names"] in page.replace(r"{\'a}", "á") for author in paper["authors"]] == [True] * 5


def test_the_workflow_tests_every_supported_python_on_two_systems():
    claimed = [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", text)]
    matrix = WORKFLOW["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == claimed
    assert len(claimed) == 3
    assert matrix["os"] == ["ubuntu-latest", "macos-latest"]
    assert set(WORKFLOW["jobs"]) == {"lint", "tests", "clusters", "lowest", "docs", "wheel"}


def test_the_workflow_uses_actions_by_their_commit_and_has_no_rights():
    steps = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert len(used) > 10
    assert [action for action in used if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action)] == []
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 60 for job in WORKFLOW["jobs"].values())


@pytest.mark.parametrize("name", [".github/workflows/ci.yml", "CONTRIBUTING.md", "RELEASING.md", "README.md"])
def test_the_make_targets_that_are_named_exist(name):
    named = set(re.findall(r"\bmake ([a-z-]+)", (ROOT / name).read_text()))
    assert named
    assert named <= set(TARGETS)


@pytest.mark.parametrize("name", GUIDES)
def test_links_of_guides_lead_to_files(name):
    text = (ROOT / name).read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if not link.startswith("https://")]
    assert [link for link in links if not (ROOT / link).exists()] == []
    assert links or name in ("CHANGELOG.md",)


def test_issue_forms_ask_for_the_needed_information():
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*_*.yml"))
    assert len(forms) == 2
    for path in forms:
        form = yaml.safe_load(path.read_text())
        assert {"name", "description", "body"} <= set(form)
        assert all(field["type"] == "textarea" and field["attributes"]["label"] for field in form["body"])
        assert len({field["id"] for field in form["body"]}) == len(form["body"])


def test_hooks_run_the_same_checks_as_the_tests():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    assert [hook["id"] for hook in repository["hooks"]] == ["ruff-check", "ruff-format", "mypy"]
    (ruff,) = (text for text in PROJECT["optional-dependencies"]["test"] if text.startswith("ruff"))
    assert all(hook["additional_dependencies"] == [ruff] for hook in repository["hooks"][:2])


def test_the_address_of_the_project_stands_in_one_place():
    """Until there is one, it is a name that cannot exist."""
    assert PROJECT["urls"] == {"Source": "https://banditune.example/source"}
    holders = []
    for path in list_tracked():
        if path.suffix in {".cff", ".ipynb", ".md", ".py", ".pyi", ".toml", ".yaml", ".yml"} and path.is_file():
            text = path.read_text(encoding="utf-8")
            if re.search(r"banditune\.example/|(github|gitlab)\.com/[\w.-]+/banditune|banditune\.readthedocs", text):
                holders.append(path.relative_to(ROOT).as_posix())
    assert sorted(holders) == ["pyproject.toml", "tests/test_project_files.py"]
