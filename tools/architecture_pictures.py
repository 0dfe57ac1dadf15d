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

# Each box: name, words below it, left, top, width, height, fill.
BOXES = {
    "file": ("files", "CXI, Dragonfly, SpiniFEL, …", 20, 60, 150, 56, "data"),
    "simulation": ("simulation/", "an experiment with its truth", 20, 142, 150, 56, "data"),
    "source": ("source/", "Patterns, by batch", 215, 60, 130, 56, "data"),
    "stream": ("stream/", "events as they come", 20, 330, 150, 56, "data"),
    "calibration": ("calibration/", "read-outs to photons", 215, 330, 130, 56, "work"),
    "hits": ("hits/", "found, sized, sorted", 390, 330, 130, 56, "work"),
    "journal": ("live/", "a journal of shots and hits", 565, 330, 150, 56, "state"),
    "slice": ("slicing/", "expected photons", 410, 65, 118, 46, "work"),
    "score": ("likelihood/", "of each pose", 556, 65, 118, 46, "work"),
    "weigh": ("posterior/", "responsibilities", 556, 155, 118, 46, "work"),
    "merge": ("slicing/", "the adjoint: merge", 410, 155, 118, 46, "work"),
    "phase": ("phase/", "density of the intensity", 770, 60, 140, 56, "work"),
    "validate": ("validate/", "two independent halves", 770, 142, 140, 56, "work"),
    "run": ("run/", "a directory is all state", 770, 234, 140, 56, "state"),
    "report": ("report/, plot/", "one page, pictures", 965, 60, 130, 56, "seen"),
    "cli": ("cli/", "the orienteer command", 965, 142, 130, 56, "seen"),
    "dashboard": ("dashboard/", "the web page", 965, 234, 130, 56, "seen"),
    "campaign": ("campaign/", "a beam time, a database", 965, 330, 130, 56, "state"),
    "online": ("online/", "rounds over hits so far", 770, 330, 140, 56, "work"),
}
# The frame around the loop that all methods share.
LOOP = (390, 26, 304, 190, "the loop: reconstruction/ (EMC), mtip/ (M-TIP), online/")
ARROWS = [
    ("file", "right", "source", "left"),
    ("simulation", "right", "source", "bottom"),
    ("source", "right", "slice", "left"),
    ("slice", "right", "score", "left"),
    ("score", "bottom", "weigh", "top"),
    ("weigh", "left", "merge", "right"),
    ("merge", "top", "slice", "bottom"),
    ("phase", "bottom", "validate", "top"),
    ("validate", "bottom", "run", "top"),
    ("phase", "right", "report", "left"),
    ("validate", "right", "cli", "left"),
    ("run", "right", "dashboard", "left"),
    ("stream", "right", "calibration", "left"),
    ("calibration", "right", "hits", "left"),
    ("hits", "right", "journal", "left"),
    ("journal", "right", "online", "left"),
    ("online", "top", "run", "bottom"),
    ("online", "right", "campaign", "left"),
]


def flow() -> str:
    """The way of one pattern from its file, and of one frame from its stream."""
    parts = [_text(20, 24, "one pattern, from its file to a density", 14, INK, "start", "bold")]
    parts += [_text(20, 312, "one live frame, from its stream to the page", 14, INK, "start", "bold")]
    left, top, width, height, words = LOOP
    parts.append(
        f"<rect x='{left}' y='{top}' width='{width}' height='{height}' rx='10' fill='none' stroke='{LINE}' "
        "stroke-width='1.2' stroke-dasharray='5 4'/>"
    )
    parts.append(_text(left + width / 2, top + 22, words, 11, SOFT))
    parts += [_arrow(_port(a, side_a), _port(b, side_b)) for a, side_a, b, side_b in ARROWS]
    parts.append(_arrow((left + width, _port("phase", "left")[1]), _port("phase", "left")))
    parts.append(_text(732, 80, "intensity", 11, SOFT))
    # Hits of the journal are a source like any other.
    parts.append(
        f"<path d='M 640 330 V 262 H 280 V 116' fill='none' stroke='{LINE}' stroke-width='1.4' {_TIP}/>"
    )
    parts.append(_text(460, 256, "hits are a source that grows", 11, SOFT))
    for name, words, x, y, width, height, fill in BOXES.values():
        parts.append(
            f"<rect x='{x}' y='{y}' width='{width}' height='{height}' rx='7' fill='{FILLS[fill]}' "
            f"stroke='{LINE}'/>"
        )
        parts.append(_text(x + width / 2, y + height / 2 - 3, name, 13, INK, weight="bold"))
        parts.append(_text(x + width / 2, y + height / 2 + 13, words, 9.5, SOFT))
    return _svg(1115, 405, parts)


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


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Straight where the ends lie opposite, else along to the end and then up or down to it."""
    (x, y), (u, v) = start, end
    way = f"L {u:g} {v:g}" if abs(x - u) < 1 or abs(y - v) < 5 else f"H {u:g} V {v:g}"
    return f"<path d='M {x:g} {y:g} {way}' fill='none' stroke='{LINE}' stroke-width='1.4' {_TIP}/>"


PICTURES_OF = {"architecture.svg": flow, "imports.svg": imports}


def main() -> None:
    for name, draw in PICTURES_OF.items():
        (PICTURES / name).write_text(draw())
        print((PICTURES / name).relative_to(ROOT))


if __name__ == "__main__":
    main()
