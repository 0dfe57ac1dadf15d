"""The settings of a run, written out whole as TOML, and how they differ from others."""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orienteer.compute.atomic import atomic_path
from orienteer.compute.reading import reading
from orienteer.settings.section import Section


def settings_tree(method: str, section: Section) -> dict[str, Any]:
    """All values of the section of a method, under its name."""
    return {method: section.model_dump(mode="json")}


def changeable(section: Section) -> dict[str, Any]:
    """The values that may change during a run, because they do not change results."""
    return {
        name: value for name, value in section.model_dump(mode="json").items() if name in section.may_change
    }


def lasting(tree: Mapping[str, Any], section: type[Section] | Section) -> dict[str, Any]:
    """The values that must stay the same during a run."""
    return {
        name: {key: value for key, value in values.items() if key not in section.may_change}
        for name, values in tree.items()
    }


def write_settings(path: Path, tree: Mapping[str, Any]) -> None:
    """Write every value, defaults included: a later version may change defaults, but not this run."""
    lines = ["# The settings of this run as they are used.  To change what affects results, begin a new run."]
    for section, values in tree.items():
        lines += ["", *_table((section,), values)]
    with atomic_path(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_settings(path: Path) -> dict[str, Any]:
    """The values that a run was begun with."""
    with reading(path, "settings file"):
        return tomllib.loads(path.read_text(encoding="utf-8"))


def hash_settings(tree: Mapping[str, Any]) -> str:
    """The hash of the values in a settings file; comments and order do not count."""
    return hashlib.blake2b(json.dumps(tree, sort_keys=True).encode(), digest_size=20).hexdigest()


def with_names_of_today(tree: Mapping[str, Any], section: type[Section] | Section) -> dict[str, Any]:
    """The values under the current names of settings; the run may have been begun with earlier names."""
    return _renamed(tree, section.earlier_names)


def is_as_begun(tree: Mapping[str, Any], section: type[Section] | Section, begun: str) -> bool:
    """Whether the lasting values have the hash with which a run was begun, under current or earlier names."""
    today = lasting(with_names_of_today(tree, section), section)
    earlier = _renamed(today, {now: then for then, now in section.earlier_names.items()})
    return begun in (hash_settings(today), hash_settings(earlier))


def _renamed(tree: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {
        section: {names.get(key, key): value for key, value in values.items()}
        if isinstance(values, Mapping)
        else values
        for section, values in tree.items()
    }


def settings_differences(stored: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Each setting that differs, in words.

    >>> settings_differences({"emc": {"iterations": 10}}, {"emc": {"iterations": 20}})
    ['emc.iterations (20 instead of 10)']
    """
    old, new = _flat(stored), _flat(given)
    return [
        f"{'.'.join(keys)} ({_said(new.get(keys))} instead of {_said(old.get(keys))})"
        for keys in dict.fromkeys([*old, *new])
        if not _is_same(old.get(keys), new.get(keys))
    ]


def _table(names: tuple[str, ...], values: Mapping[str, Any]) -> list[str]:
    lines = [f"[{'.'.join(_key(name) for name in names)}]"]
    tables = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            tables += ["", *_table((*names, name), value)]
        elif value is not None:  # TOML has no null; a missing key means "not set"
            lines.append(f"{_key(name)} = {_value(value)}")
    return lines + tables


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(part) for part in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(name)} = {_value(part)}" for name, part in value.items()) + "}"
    # Python writes numbers, inf and nan as TOML does.
    return repr(value) if isinstance(value, (int, float)) else _text(str(value))


def _text(text: str) -> str:
    """A basic string of TOML, whose escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _flat(tree: Mapping[str, Any], above: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    flat: dict[tuple[str, ...], Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, (*above, name)))
        elif value is not None:
            flat[(*above, name)] = list(value) if isinstance(value, tuple) else value
    return flat


def _is_same(old: Any, new: Any) -> bool:
    if isinstance(old, float) and isinstance(new, float) and math.isnan(old) and math.isnan(new):
        return True
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


def _said(value: Any) -> str:
    return "nothing" if value is None else _value(value)
