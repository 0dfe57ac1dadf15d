"""Every example runs as it stands and ends in a picture."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.rglob("*.py"))


def test_there_are_examples() -> None:
    assert len(SCRIPTS) >= 3


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_is_short_and_makes_its_picture(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from matplotlib import pyplot as plt

    plt.switch_backend("agg")
    assert len(script.read_text().splitlines()) < 60
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    plt.close("all")
    picture = tmp_path / f"{script.stem}.png"
    assert [path.name for path in tmp_path.iterdir()] == [picture.name]
    assert capsys.readouterr().out.strip() == picture.name
    pixels = plt.imread(picture)
    assert min(pixels.shape[:2]) > 300
    # A picture of something: neither one colour nor a few.
    assert len({tuple(pixel) for row in pixels[::4, ::4, :3].round(2).tolist() for pixel in row}) > 20
