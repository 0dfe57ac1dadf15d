"""The files of the page: complete, and strangers to all other sites."""

import re
from pathlib import Path

import pytest

import orienteer.dashboard

PAGE = Path(orienteer.dashboard.__file__).parent / "page"
FILES = sorted(PAGE.iterdir())


def test_every_module_is_fetched_ahead_once():
    """Through a tunnel, modules that are found one after the other take as many journeys."""
    told = re.findall(r'<link rel="modulepreload" href="/static/([^"]+)">', (PAGE / "index.html").read_text())
    assert told == sorted(file.name for file in PAGE.glob("*.js") if file.name != "main.js")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_nothing_comes_from_elsewhere_and_text_never_becomes_markup(file: Path):
    text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//cdn|@import", text)
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(\"style"
    )
    assert not re.search(forbidden, text)


def test_the_document_holds_no_script_and_no_style_of_its_own():
    text = (PAGE / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*src=)", text) == []
    assert "<style" not in text
    assert not re.search(r"\son\w+=|\sstyle=", text)


def test_modules_import_what_there_is():
    for file in PAGE.glob("*.js"):
        for names, module in re.findall(r'import \{([^}]*)\} from "\./([^"]+)"', file.read_text()):
            exported = (PAGE / module).read_text()
            for name in (part.strip() for part in names.split(",") if part.strip()):
                assert re.search(rf"export (?:async )?(?:function|class|const) {name}\b", exported), (
                    file.name,
                    name,
                )
                uses = len(re.findall(rf"\b{name}\b", file.read_text()))
                assert uses > 1, f"{file.name} imports {name} and does not use it"
