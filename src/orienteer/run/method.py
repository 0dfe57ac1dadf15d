"""Method: the iterative reconstruction that a run carries out step by step, and the methods by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from orienteer.compute.arrays import Array
from orienteer.compute.ranks.mesh import SERIAL_MESH
from orienteer.errors import SettingsError
from orienteer.settings.section import Section

if TYPE_CHECKING:
    from orienteer.volume.volume import Volume

# What a method needs to continue bit for bit: arrays and plain values by name; names may hold "/".
State: TypeAlias = Mapping[str, Array | float | int | str | bool | None]


class Step(Protocol):
    """The record of one iteration: a dataclass of numbers, texts and lists, so that it can be a JSON line."""

    @property
    def iteration(self) -> int:
        """Steps done so far, this one included."""
        ...


class Method(Protocol):
    """An iterative reconstruction.  What ``step`` does depends only on its state and its input."""

    @property
    def iteration(self) -> int:
        """Steps done."""
        ...

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        ...

    @property
    def reason(self) -> str:
        """Why it has finished, in one sentence."""
        ...

    def step(self) -> Step:
        """One iteration."""
        ...

    def state(self) -> State:
        """Everything needed to continue bit for bit."""
        ...

    def restore(self, state: State) -> None:
        """Continue from a state of the same method with the same settings, input and seed."""
        ...

    def volumes(self) -> Sequence[Volume]:
        """The intensity of each model, in reciprocal space."""
        ...

    def orientations(self) -> Mapping[str, Array]:
        """Columns with one row per frame: ``event_id``, ``quaternion`` (N, 4), ``fluence`` and others."""
        ...


# Takes source, section, seed and device, and on several ranks the mesh.
MakeMethod: TypeAlias = Callable[..., Method]


@dataclass(frozen=True)
class MethodKind:
    """A method by name.

    name : also that of its section of settings.
    settings : the class of that section.
    make : source, section, seed and device in, method out; on several ranks the mesh comes last.
    """

    name: str
    settings: type[Section]
    make: MakeMethod


# Name of the method and of its section in Settings -> module and class, which is loaded when it is needed.
# The class takes (source, section, seed=..., device=..., mesh=...).
_HOME = {
    "emc": ("orienteer.reconstruction.emc", "Emc"),
    "mtip": ("orienteer.mtip.mtip", "Mtip"),
}
_registered: dict[str, MethodKind] = {}


def register_method(kind: MethodKind) -> None:
    """Make a method of your own known by its name, in this process."""
    _registered[kind.name] = kind


def find_method(name: str) -> MethodKind:
    """The method of this name."""
    if isinstance(name, str) and name in _registered:
        return _registered[name]
    if not isinstance(name, str) or name not in _HOME:
        known = ", ".join(sorted({*_HOME, *_registered}))
        raise SettingsError(f"method '{name}' is not known.", f"Known methods: {known}.")
    from orienteer.run.settings import Settings

    module, class_name = _HOME[name]
    method = getattr(import_module(module), class_name)
    section: Any = Settings.model_fields[name].annotation
    return MethodKind(
        name,
        section,
        lambda source, settings, seed, device, mesh=SERIAL_MESH: cast(
            Method, method(source, settings, seed=seed, device=device, mesh=mesh)
        ),
    )
