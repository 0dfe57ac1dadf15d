"""Sources of kernels with their headers, as the compiler is given them."""

from pathlib import Path

from orienteer.compute.kernels import whole_text


def test_headers_stand_in_their_places_and_lines_keep_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "inner.cuh").write_text("int inner;\n")
    (tmp_path / "header.cuh").write_text('#include "inner.cuh"\nint header;\n')
    source = tmp_path / "source.cu"
    source.write_text('int before;\n#include "header.cuh"\nint after;\n')
    found, file, line = {}, "", 0
    for text in whole_text(source).splitlines():
        if text.startswith("#line"):
            _, number, name = text.split(" ", 2)
            file, line = Path(name.strip('"')).name, int(number)
            continue
        if text:
            found[text] = file, line
        line += 1
    assert found == {
        "int before;": ("source.cu", 1),
        "int inner;": ("inner.cuh", 1),
        "int header;": ("header.cuh", 2),
        "int after;": ("source.cu", 3),
    }
