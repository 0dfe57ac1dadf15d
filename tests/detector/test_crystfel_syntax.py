"""Lines, numbers with units and vectors of CrystFEL geometry files."""

import pytest

from orienteer.detector.crystfel_syntax import Directive, read_directives
from orienteer.errors import FileError


def directive(value: str) -> Directive:
    return Directive("a.geom", 7, "p0", "key", value)


def test_lines_become_directives_with_their_numbers() -> None:
    text = "; comment\n\nclen = 0.1 ; metres\r\np0/fs = x\n  bad1 / min_x=-3\n"
    with pytest.raises(FileError, match="line 1"):
        read_directives("a.geom", "p0/a/fs = 1")
    found = read_directives("a.geom", text)
    assert [(d.line, d.owner, d.key, d.value) for d in found[:2]] == [
        (3, None, "clen", "0.1"),
        (4, "p0", "fs", "x"),
    ]
    assert (found[2].owner, found[2].key, found[2].value) == ("bad1", "min_x", "-3")


@pytest.mark.parametrize("line", ["nonsense", "= 3", "clen =", "/fs = 1", "p0/ = 1", "a/b/c = 1"])
def test_a_malformed_line_is_named_by_its_number(line: str) -> None:
    with pytest.raises(FileError, match=r"a\.geom: line 3 is not"):
        read_directives("a.geom", f"clen = 1\n\n{line}\n")


@pytest.mark.parametrize(
    ("text", "vector"),
    [
        ("+0.99x -0.01y +0.002z", (0.99, -0.01, 0.002)),
        ("x", (1, 0, 0)),
        ("-y", (0, -1, 0)),
        ("1.0x+2.5e-3y", (1, 0.0025, 0)),
        ("- 0.5z + .25x", (0.25, 0, -0.5)),
        ("-1E-3x", (-0.001, 0, 0)),
        ("0.0x -1.0y", (0, -1, 0)),
    ],
)
def test_vectors(text: str, vector: tuple[float, float, float]) -> None:
    assert directive(text).vector() == vector


@pytest.mark.parametrize(
    "text", ["1.0", "x x", "1.0x 2.0x", "1.0x 1.0y", "w", "nanx", "1..0x", "1e999x", "x+", "--x"]
)
def test_what_is_no_vector_is_refused(text: str) -> None:
    with pytest.raises(FileError, match="line 7"):
        directive(text).vector()


def test_numbers_with_units() -> None:
    lengths = {"": 1.0, "m": 1.0, "mm": 1e-3}
    assert directive("200 mm").quantity(lengths) == pytest.approx(0.2)
    assert directive("200mm").quantity(lengths) == pytest.approx(0.2)
    assert directive("-0.2").quantity(lengths) == -0.2
    assert directive("0xff").integer() == 255
    assert directive("12.000").integer() == 12
    assert directive("true").flag()
    for text in ("200 cm", "nan", "2 m m", "1e999", "1_0"):
        with pytest.raises(FileError, match="line 7"):
            directive(text).quantity(lengths)
    for text in ("1.5", "1e300", "0xz", "nan"):
        with pytest.raises(FileError, match="line 7"):
            directive(text).integer()


def test_places_in_the_data_are_told_from_numbers() -> None:
    assert directive("/LCLS/detector/clen mm").is_location()
    assert directive("detector_distance").is_location()
    assert not directive("-0.3 m").is_location()
    assert not directive(".3").is_location()
