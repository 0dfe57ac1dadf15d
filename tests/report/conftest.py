"""A tiny run of the real method, phased and validated by the real writers, and a reader of pages."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.particle.named_bodies import random_blobs
from orienteer.phase.phasing import phase
from orienteer.phase.result import Phasing
from orienteer.phase.settings import PhaseSettings
from orienteer.reconstruction.settings import EmcSettings
from orienteer.run.run import Run
from orienteer.validate.coverage import coverage
from orienteer.validate.half_maps import compare_half_maps
from orienteer.validate.intensities import IntensityAgreement
from orienteer.validate.result import HalfSummary, Validation, VoxelErrors
from orienteer.validate.sentinel_poses import PoseAgreement
from orienteer.volume.volume import Volume

VOID = {"br", "col", "hr", "img", "input", "link", "meta"}
# Attributes by which a page makes a browser fetch something.
FETCHING = {"src", "srcset", "data", "poster", "action", "background", "xlink:href"}


@dataclass
class Page(HTMLParser):
    """What a strict reader finds in a page."""

    content: str
    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[str] = []
        self.feed(self.content)
        self.close()
        if self._open:
            self.wrong.append(f"never closed: {self._open}")

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attributes]
        if len(set(names)) < len(names):
            self.wrong.append(f"an attribute stands twice in {tag}: {names}")
        self.elements.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id" and value]
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.wrong.append(f"</{tag}> ends something else")

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    @property
    def fetched(self) -> list[str]:
        """Everything that a browser would fetch for the page; data that it holds itself is nothing."""
        found = []
        for tag, attributes in self.elements:
            names = FETCHING | ({"href"} if tag in ("link", "image", "use", "base") else set())
            values = [value for name, value in attributes.items() if name in names and value]
            found += [value for value in values if not value.startswith("data:")]
        return found


@pytest.fixture(scope="session")
def read_page() -> Callable[[str | Path], Page]:
    return lambda page: Page(page.read_text(encoding="utf-8") if isinstance(page, Path) else page)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in ``run`` with its data beside it: reconstructed, phased and validated."""
    folder = tmp_path_factory.mktemp("report")
    detector = orienteer.square_detector(16, edge_resolution_A=65, wavelength_A=2.5, pixel_size_m=5e-4)
    settings = orienteer.SimulateSettings(frames=60, photons_per_frame=2000, fluence_jitter=0.3, seed=3)
    beam = orienteer.Beam(wavelength_A=2.5)
    experiment = orienteer.simulate(random_blobs(200.0, 20, 5), beam, detector, settings, device="cpu")
    with orienteer.writer_for(folder / "frames.h5", like=experiment) as writer:
        writer.append(experiment.read())
    emc = EmcSettings(symmetry="I", diameter_A=200, iterations=4)
    run = Run.create(folder / "run", orienteer.open(folder / "frames.h5"), emc, seed=7, device="cpu")
    with pytest.warns(UserWarning, match="60 frames are few"):
        list(run.iterate())
    phased = phase(run.volumes()[0], PHASE, seed=7, device="cpu")
    facts = {"run_id": run.described["run_id"], "iteration": run.iteration}
    Phasing(**{**vars(phased), "origin": facts}).save(run.path)
    validation = validate_quickly(run, phased.density)
    (run.path / "validation").mkdir()
    validation.save(run.path / "validation")
    return folder


PHASE = PhaseSettings(
    starts=3, schedule="20*raar(0.87) 5*er", symmetry="I", diameter_A=200.0, support_volume_A3=2e6
)


def validate_quickly(run: Run, density: Volume) -> Validation:
    """What a validation writes; its halves are the density with noise, and not runs."""
    rng = np.random.default_rng(1)
    scale = 0.05 * float(density.values.max())
    halves = [
        density.with_values(density.values + rng.normal(0, scale, density.shape).astype(np.float32))
        for _ in range(2)
    ]
    q = np.linspace(0, 0.015, 12)
    fallen = 1 / (1 + np.exp((q - 0.012) / 1e-3))
    pixels = run.source.detector.q_inv_A(2.5)
    return Validation(
        run_id=run.described["run_id"],
        iteration=run.iteration,
        halves=tuple(HalfSummary(f"half_{i}", 10 + i, 20 + i, 27, 4, "done", 200.0) for i in (1, 2)),
        maps=compare_half_maps(*halves, edge_A=65, order=60),
        intensity=IntensityAgreement(np.array([1.0, 0, 0, 0]), q, fallen, 600.0),
        whole=IntensityAgreement(np.array([1.0, 0, 0, 0]), q, np.sqrt(fallen), 600.0),
        sentinels=PoseAgreement(6, 1.5, 4.0, 20.0),
        coverage=coverage(run.orientations()["quaternion"], pixels, 0.01, 200.0, group="I"),
        errors=VoxelErrors(20, 3, q[1:], 0.02 + q[1:]),
        given=("the symmetry I",),
        settings={"validation": {"replicates": 20}},
        seed=7,
    )


@pytest.fixture
def run_folder(made_once: Path, tmp_path: Path) -> Path:
    """A copy of the run, to spoil; its data stay where they are."""
    return Path(shutil.copytree(made_once / "run", tmp_path / "run"))


@pytest.fixture(scope="session")
def reported_once(made_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run with its report, for those who only read."""
    from orienteer.report.page import write_report

    folder = Path(shutil.copytree(made_once / "run", tmp_path_factory.mktemp("reported") / "run"))
    write_report(folder)
    return folder


@pytest.fixture
def bare_folder(run_folder: Path) -> Path:
    """The run before phasing and validation."""
    for name in ("density.mrc", "density.h5", "support.mrc", "phasing.json"):
        (run_folder / name).unlink()
    shutil.rmtree(run_folder / "validation")
    return run_folder


def edit_json(path: Path, **changes: Any) -> None:
    import json

    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.fixture
def edit() -> Callable[..., None]:
    """``edit(path, key=value)`` changes a JSON file."""
    return edit_json
