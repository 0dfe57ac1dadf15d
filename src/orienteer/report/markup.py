"""HTML and SVG from Python: text is escaped when it is put into an element, unless it is markup already.

Names of samples, files and machines come from outside.  Only :class:`Markup` is inserted unescaped, and only
:func:`element` and :func:`joined` make it, so a name can never become a part of the page's code.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import TypeAlias

# Elements without an end tag in HTML; SVG shapes get an end tag.
_VOID = {"br", "col", "hr", "img", "input", "link", "meta"}
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class Markup(str):
    """Text that is HTML or SVG already."""

    __slots__ = ()


Content: TypeAlias = "str | Markup"
Value: TypeAlias = "str | int | float | bool | None"


def element(name: str, /, *content: Content, **attributes: Value) -> Markup:
    """An element with its content.

    attributes : ``class_`` stands for ``class``, and underscores for hyphens; True is an attribute without a
        value; None and False leave it out; floats are written with six digits.

    >>> element("p", "a < b ", element("b", "c"), class_="note", id=None)
    '<p class="note">a &lt; b <b>c</b></p>'
    >>> element("img", src="x.png", alt='a "name"')
    '<img src="x.png" alt="a &quot;name&quot;">'
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(content)}</{name}>")


def joined(content: Iterable[Content], between: str = "") -> Markup:
    """Several pieces joined; plain texts among them are escaped.

    >>> joined(["<a>", element("b", "c")])
    '&lt;a&gt;<b>c</b>'
    """
    return Markup(between.join(part if isinstance(part, Markup) else escaped(part) for part in content))


def escaped(text: str) -> Markup:
    """The text escaped for HTML; characters that HTML does not allow become replacement characters."""
    return Markup(html.escape(_UNPRINTABLE.sub("\ufffd", text), quote=True))


def _attribute(key: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    name = key.removesuffix("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f' {name}="{escaped(text)}"'
