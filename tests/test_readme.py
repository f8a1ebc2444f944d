"""Every Python snippet of the READMEs and of the documentation runs.

The snippets of a page run one after the other, share their names, and start in an empty folder. One
that cannot run here is left out by a comment before it: `<!-- skip: next "reason" -->`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "packages/*/README.md", "docs/**/*.md")
    for path in ROOT.glob(pattern)
    if "```python" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("page", PAGES)
def test_snippets_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.chdir(tmp_path)
    sybil = Sybil([PythonCodeBlockParser(), SkipParser()])
    for example in sybil.parse(ROOT / page).examples():
        with subtests.test(line=example.line):
            example.evaluate()


@pytest.mark.parametrize("page", PAGES)
def test_a_snippet_is_left_out_only_for_a_reason(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for directive in re.findall(r"<!--\s*skip.*?-->", text, flags=re.DOTALL):
        assert re.fullmatch(r'<!-- skip: next "[^"]{10,}" -->', directive)


def test_all_pages_are_found() -> None:
    assert {"README.md", "docs/environments.md", "packages/rolloutlib-core/README.md"} <= set(PAGES)
