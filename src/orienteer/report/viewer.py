"""The surface of the density in the page: pictures for any browser, and one to turn if it has WebGL2."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from orienteer.report.evidence import Found
from orienteer.report.markup import Markup, element, joined
from orienteer.report.png import data_link, encode_png
from orienteer.report.surface import Packed, pack, surface_picture
from orienteer.report.words import number, sentence
from orienteer.volume.volume import Volume


def draw_surface(
    density: Volume, halves: Found[tuple[Volume, Volume]], unit: str, levels: Sequence[float] = ()
) -> Markup:
    """The surface in three pictures, and as one that can be turned if the browser supports it.

    levels : of the surfaces of the density and of the halves, if they are known already.
    """
    volumes = [density, *(halves.value or ())]
    names = ["Density", *(f"Half {index}" for index in range(1, len(volumes)))]
    places = {"z": "from +z (x right, y up)", "y": "from −y (x right, z up)", "x": "from +x (y right, z up)"}
    with ThreadPoolExecutor() as pool:
        cuts = [*levels, *[None] * (len(volumes) - len(levels))]
        packing = [pool.submit(pack, volume, cut) for volume, cut in zip(volumes, cuts, strict=True)]
        first = packing[0].result()
        drawn = pool.map(lambda along: encode_png(surface_picture(first, along)), places)
        pictures = [
            element(
                "figure",
                element(
                    "img", src=data_link(picture, "image/png"),
                    alt=f"Isosurface of the density seen {words}", width=320, height=320,
                ),
                element("figcaption", sentence(words)),
            )
            for picture, words in zip(drawn, places.values(), strict=True)
        ]  # fmt: skip
        maps = [(name, one.result()) for name, one in zip(names, packing, strict=True)]
    level = f"The surface is at {number(first.level)} {unit}, which best separates particle and surroundings."
    half = "" if len(maps) > 1 else f" {halves.missing}"
    return joined(
        [
            _viewer([name for name, _ in maps]),
            element(
                "p", "This browser has no WebGL2, so the surface cannot be turned; see the pictures.",
                id="no-webgl", class_="missing", hidden=True,
            ),
            element("div", *pictures, class_="surfaces"),
            element("p", f"{level}{half}", class_="quiet"),
            _stored(maps, unit),
        ]
    )  # fmt: skip


def _viewer(names: list[str]) -> Markup:
    """The canvas and its controls; hidden until the script has found WebGL2 to work."""
    choices = [
        element(
            "label", element("input", type="radio", name="map", value=index, checked=index == 0), f" {name}"
        )
        for index, name in enumerate(names)
    ]
    words = "Isosurface of the density. Arrow keys turn it, plus and minus zoom, Home resets the view."
    stage = element(
        "div", element("canvas", tabindex=0, role="img", aria_label=words),
        element("div", class_="scale-bar"), class_="stage",
    )  # fmt: skip
    slider = element(
        "label",
        "Surface at ",
        element("input", type="range", min=1, max=1000, value=300),
        " ",
        element("output"),
    )
    controls = [
        element("fieldset", *choices, aria_label="Map") if len(names) > 1 else Markup(),
        slider,
        element("button", "Reset the view", type="button"),
    ]
    hint = element(
        "p",
        "Turn it by mouse, touch or arrow keys; click it, then zoom by wheel, two fingers or + and −.",
        class_="quiet",
    )
    return element("div", stage, element("div", *controls, class_="controls"), hint, id="viewer", hidden=True)


def _stored(maps: list[tuple[str, Packed]], unit: str) -> Markup:
    """The maps for the script, x running fastest."""
    content: list[dict[str, Any]] = [
        {
            "name": name,
            "shape": list(packed.voxels.shape),
            "voxel_A": list(packed.voxel_A),
            "low": packed.low,
            "high": packed.high,
            "level": packed.level,
            "fill": packed.fill,
            "unit": unit,
            "voxels": base64.b64encode(packed.voxels.tobytes(order="F")).decode("ascii"),
        }
        for name, packed in maps
    ]
    # Text in a script element is not escaped, so it must not contain its end tag.
    safe = json.dumps(content).replace("<", "\\u003c")
    return element("script", Markup(safe), type="application/json", id="maps")
