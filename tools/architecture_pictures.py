"""Write the pictures of docs/explanation/architecture.md.

    python tools/architecture_pictures.py

``architecture.svg`` is the way of the data, drawn from the lists below; ``imports.svg`` is read from the
sources: which folder imports from which.
"""

import ast
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "orienteer"
PICTURES = ROOT / "docs" / "explanation" / "pictures"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
INK, SOFT, LINE, PAPER = "#1f2933", "#5f6c7b", "#8795a3", "#ffffff"
FILLS = {"data": "#e3eefb", "work": "#fdf1dc", "state": "#e4f4e6", "seen": "#f3e8f7"}
FONT = "font-family='Helvetica, Arial, sans-serif'"

# The page shows the picture at about 0.6 of its size: words are large enough to be read there.
NAME, WORDS, HEADING = 17, 14, 18

# Each box: name, words below it, left, top, width, height, fill.
BOXES = {
    "file": ("files", "CXI, Dragonfly, SpiniFEL", 20, 66, 185, 64, "data"),
    "simulation": ("simulation/", "frames and their truth", 20, 158, 185, 64, "data"),
    "source": ("source/", "Patterns, by batch", 240, 66, 165, 64, "data"),
    "stream": ("stream/", "events as they come", 20, 370, 185, 64, "data"),
    "calibration": ("calibration/", "read-outs to photons", 240, 370, 165, 64, "work"),
    "hits": ("hits/", "found, sized, sorted", 440, 370, 165, 64, "work"),
    "live": ("live/", "a journal of all shots", 640, 370, 185, 64, "state"),
    "slice": ("slicing/", "expected photons", 458, 71, 160, 54, "work"),
    "score": ("likelihood/", "of each pose", 647, 71, 160, 54, "work"),
    "weigh": ("posterior/", "responsibilities", 647, 167, 160, 54, "work"),
    "merge": ("slicing/", "the adjoint: merge", 458, 167, 160, 54, "work"),
    "phase": ("phase/", "density of the intensity", 895, 66, 185, 64, "work"),
    "validate": ("validate/", "two independent halves", 895, 158, 185, 64, "work"),
    "run": ("run/", "a directory is all state", 895, 250, 185, 64, "state"),
    "report": ("report/, plot/", "one page, pictures", 1120, 158, 175, 64, "seen"),
    "dashboard": ("dashboard/", "the web page", 1120, 250, 175, 64, "seen"),
    "campaign": ("campaign/", "shots, runs and jobs", 1120, 370, 175, 64, "state"),
    "online": ("online/", "rounds over hits so far", 895, 370, 185, 64, "work"),
    "cli": (
        "cli/", "the orienteer command: it starts each of these, and tells what they say",
        20, 492, 1275, 62, "seen",
    ),
}  # fmt: skip
# The frame around the loop that all methods share.
LOOP = (440, 30, 385, 212, "the loop: reconstruction/, mtip/, online/")
# From which side of a box to which side of another; and the way between them, where it has corners.
ARROWS = [
    ("file", "right", "source", "left", ""),
    ("simulation", "right", "source", "bottom", "H 322"),
    ("source", "right", "slice", "left", ""),
    ("slice", "right", "score", "left", ""),
    ("score", "bottom", "weigh", "top", ""),
    ("weigh", "left", "merge", "right", ""),
    ("merge", "top", "slice", "bottom", ""),
    ("phase", "bottom", "validate", "top", ""),
    ("validate", "bottom", "run", "top", ""),
    ("run", "right", "report", "left", "H 1100 V 190"),
    ("run", "right", "dashboard", "left", ""),
    ("stream", "right", "calibration", "left", ""),
    ("calibration", "right", "hits", "left", ""),
    ("hits", "right", "live", "left", ""),
    ("live", "right", "online", "left", ""),
    # Hits of the journal are a source like any other.
    ("live", "top", "source", "bottom", "V 296 H 322"),
    ("live", "bottom", "campaign", "bottom", "V 464 H 1207"),
    ("online", "top", "run", "bottom", ""),
    ("campaign", "top", "dashboard", "bottom", ""),
]
# What goes along an arrow: words and their middle.
ALONG = [
    ("intensity", 860, 88),
    ("hits are a source that grows", 525, 289),
    ("every shot, once", 860, 458),
]


def flow() -> str:
    """The way of one pattern from its file, and of one frame from its stream."""
    parts = [_text(20, 26, "one pattern, from its file to a density", HEADING, INK, "start", "bold")]
    parts += [_text(20, 350, "one live frame, from its stream to the page", HEADING, INK, "start", "bold")]
    left, top, width, height, words = LOOP
    parts.append(
        f"<rect x='{left}' y='{top}' width='{width}' height='{height}' rx='10' fill='none' stroke='{LINE}' "
        "stroke-width='1.2' stroke-dasharray='5 4'/>"
    )
    parts.append(_text(left + width / 2, top + 25, words, WORDS, SOFT))
    parts += [_arrow(_port(a, side_a), _port(b, side_b), way) for a, side_a, b, side_b, way in ARROWS]
    parts.append(_arrow((left + width, _port("phase", "left")[1]), _port("phase", "left")))
    parts += [_text(x, y, words, WORDS, SOFT) for words, x, y in ALONG]
    for name, words, x, y, width, height, fill in BOXES.values():
        parts.append(
            f"<rect x='{x}' y='{y}' width='{width}' height='{height}' rx='7' fill='{FILLS[fill]}' "
            f"stroke='{LINE}'/>"
        )
        parts.append(_text(x + width / 2, y + height / 2 - 4, name, NAME, INK, weight="bold"))
        parts.append(_text(x + width / 2, y + height / 2 + 17, words, WORDS, SOFT))
    return _svg(1315, 570, parts)


def imports() -> str:
    """Which folder (rows) imports from which (columns)."""
    order, used = folders(), imported()
    cell, left, top = 22, 118, 112
    size = cell * len(order)
    parts = []
    for row, folder in enumerate(order):
        y = top + row * cell
        parts.append(_text(left - 8, y + 15, folder, 12, INK, "end"))
        parts.append(
            f"<text x='0' y='0' transform='translate({left + row * cell + 15},{top - 8}) rotate(-60)' "
            f"{FONT} font-size='12' fill='{INK}'>{folder}</text>"
        )
        parts.append(
            f"<rect x='{left + row * cell}' y='{y}' width='{cell}' height='{cell}' fill='#e8ecf0' "
            f"stroke='{PAPER}'/>"
        )
        for column, other in enumerate(order):
            if (folder, other) in used and folder != other:
                parts.append(
                    f"<rect x='{left + column * cell}' y='{y}' width='{cell}' height='{cell}' fill='#4a86c5' "
                    f"stroke='{PAPER}'><title>{folder} imports from {other}</title></rect>"
                )
    words = "A row imports from the columns that are marked. Nothing lies above the diagonal."
    parts.append(_text(left, top + size + 24, words, 12, SOFT, "start"))
    return _svg(left + size + 40, top + size + 40, parts)


def folders() -> list[str]:
    """The folders from upstream to downstream, as the table of the page has them."""
    lines = PAGE.read_text().splitlines()
    names = [line.split("`")[1] for line in lines if line.startswith("| `")]
    return [name.removesuffix("/").removesuffix(".py") for name in names if name.endswith(("/", ".py"))]


def imported() -> set[tuple[str, str]]:
    """Pairs of folders of which the first imports from the second."""
    return {
        (path.relative_to(PACKAGE).parts[0].removesuffix(".py"), other)
        for path in PACKAGE.rglob("*.py")
        for other in imports_of(path)
    }


def imports_of(path: Path) -> set[str]:
    """The folders below ``orienteer`` that a module imports from, also inside of functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name.split(".")[1] for name in names if name.startswith("orienteer.")} - {"__version__"}


_TIP = "marker-end='url(#tip)'"


def _svg(width: float, height: float, parts: list[str]) -> str:
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' "
        f"height='{height}'>\n"
        "<defs><marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' "
        f"orient='auto'><path d='M 0 0 L 8 4 L 0 8 z' fill='{LINE}'/></marker></defs>\n"
        f"<rect width='{width}' height='{height}' fill='{PAPER}'/>\n"
    )
    return head + "\n".join(parts) + "\n</svg>\n"


def _text(
    x: float, y: float, words: str, size: float, ink: str, anchor: str = "middle", weight: str = "normal"
) -> str:
    return (
        f"<text x='{x:g}' y='{y:g}' {FONT} font-size='{size:g}' font-weight='{weight}' fill='{ink}' "
        f"text-anchor='{anchor}'>{escape(words)}</text>"
    )


def _port(box: str, side: str) -> tuple[float, float]:
    _, _, x, y, width, height, _ = BOXES[box]
    return {
        "left": (x, y + height / 2),
        "right": (x + width, y + height / 2),
        "top": (x + width / 2, y),
        "bottom": (x + width / 2, y + height),
    }[side]


def _arrow(start: tuple[float, float], end: tuple[float, float], way: str = "") -> str:
    """From one point to another, with ``way`` between them."""
    between = f"{way} " if way else ""
    return (
        f"<path d='M {start[0]:g} {start[1]:g} {between}L {end[0]:g} {end[1]:g}' fill='none' stroke='{LINE}' "
        f"stroke-width='1.6' {_TIP}/>"
    )


PICTURES_OF = {"architecture.svg": flow, "imports.svg": imports}


def main() -> None:
    for name, draw in PICTURES_OF.items():
        (PICTURES / name).write_text(draw())
        print((PICTURES / name).relative_to(ROOT))


if __name__ == "__main__":
    main()
