"""The picture of a phased density shows the density, and which starts it rests on."""

import io

import numpy as np
import pytest
from matplotlib.figure import Figure

from orienteer.phase.ensemble import Cluster, Clusters
from orienteer.phase.prtf import Prtf
from orienteer.phase.r_factor import RFactor
from orienteer.phase.result import Phasing
from orienteer.phase.scale import ABSOLUTE, ARBITRARY, Scale
from orienteer.phase.weak_modes import WeakModes
from orienteer.plot.density import draw_transfer, plot_density
from orienteer.volume.volume import Volume

N, VOXEL_A = 16, 5.0
Q = np.linspace(0.005, 0.05, 10)


def make_phasing(
    n_starts: int = 8, n_averaged: int = 6, unit: str = ABSOLUTE, empty: bool = False, pairs: bool = True
) -> Phasing:
    rng = np.random.default_rng(0)
    values = np.zeros((N, N, N))
    if not empty:
        values[6:11, 5:10, 7:12] = rng.uniform(0.5, 1.0, (5, 5, 5))
    support = (values > 0).astype(np.float32)
    members = tuple(range(n_averaged))
    clusters = [Cluster(members, (1.0, *[0.9] * (n_averaged - 1)), 0.7, -0.6)]
    if n_averaged < n_starts:
        clusters.append(Cluster((n_averaged,), (1.0,), 0.6, -2.0))  # further starts are in no cluster
    agreement = (
        rng.uniform(0.3, 1.0, (n_starts, n_starts)) if pairs else np.full((n_starts, n_starts), np.nan)
    )
    return Phasing(
        density=Volume(values, VOXEL_A),
        support=Volume(support, VOXEL_A),
        clusters=Clusters(tuple(clusters), agreement, rng.normal(size=n_starts)),
        prtf=Prtf(Q, np.linspace(1, 0.1, 10), np.arange(10, 20), n_averaged),
        r_factor=RFactor(0.12, Q, np.linspace(0.05, 0.3, 10)),
        weak_modes=WeakModes(np.zeros(0), 0.0, 0),
        scale=Scale(1.0, unit, "a test"),
    )


def png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=40)
    return buffer.getvalue()


def test_slices_and_projections_are_those_of_the_density() -> None:
    phasing = make_phasing()
    figure = plot_density(phasing, "runs/virus")
    assert png(figure).startswith(b"\x89PNG")
    drawn = {axes.get_title(): axes for axes in figure.axes}
    values = phasing.density.values
    np.testing.assert_allclose(drawn["slice at z = 0"].images[0].get_array(), values[:, :, 8].T)
    np.testing.assert_allclose(drawn["slice at y = 0"].images[0].get_array(), values[:, 8, :].T)
    np.testing.assert_allclose(
        drawn["projection along x"].images[0].get_array(), VOXEL_A * values.sum(axis=0).T, rtol=1e-6
    )
    assert drawn["slice at x = 0"].get_xlabel() == "y (Å)"
    # The box is three times as large as the particle, of which the picture shows no more than needed.
    low, high = drawn["slice at z = 0"].get_xlim()
    assert 10 < high < 40 * VOXEL_A / 5
    assert low == -high


def test_the_title_says_how_many_starts_agree_and_how_far() -> None:
    title = plot_density(make_phasing(), "a$b").get_suptitle()
    assert title.startswith("a\\$b")
    assert "6 of 8 starts agree, phases repeat to" in title
    assert "too few starts to tell" in plot_density(make_phasing(n_averaged=1)).get_suptitle()


def test_the_unit_is_told() -> None:
    for unit, words in ((ABSOLUTE, "e/Å³"), (ARBITRARY, "arbitrary")):
        labels = [axes.get_ylabel() for axes in plot_density(make_phasing(unit=unit)).axes]
        assert f"density ({words})" in labels


@pytest.mark.parametrize(
    "phasing",
    [
        make_phasing(n_starts=1, n_averaged=1),
        make_phasing(empty=True, pairs=False),
    ],
    ids=["one start", "empty, and many starts"],
)
def test_whatever_comes_out_is_drawn(phasing: Phasing) -> None:
    assert png(plot_density(phasing)).startswith(b"\x89PNG")


def test_a_transfer_above_1_stays_in_the_picture() -> None:
    axes = Figure().subplots()
    draw_transfer(axes, Prtf(Q, np.linspace(1.2, 0.9, 10), np.arange(10, 20), 5))
    assert axes.get_ylim()[1] > 1.2


def test_words_and_legend_of_the_transfer_stand_in_nobodys_way() -> None:
    figure = plot_density(make_phasing(n_starts=7, n_averaged=6))
    figure.draw_without_rendering()
    axes = next(a for a in figure.axes if a.get_xlabel().startswith("q (1/Å)"))
    words = [text.get_window_extent() for text in axes.texts]
    assert len(words) == 2
    assert not words[0].overlaps(words[1])
    legend = axes.get_legend()
    assert legend is not None
    assert legend.get_window_extent().y1 < axes.get_window_extent().y0
