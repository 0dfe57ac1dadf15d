"""Form factors: electron counts, fall-off, anomalous terms and unknown elements."""

import gemmi
import numpy as np
import pytest
from numpy.typing import ArrayLike

from orienteer.errors import OrienteerError
from orienteer.particle.scatterers import ScattererTable, element_table, gaussian_table, join_tables


def form_factors(table: ScattererTable, q_inv_A: ArrayLike) -> np.ndarray:
    """f0 of every kind at each |q|, by the formula: (...,) in 1/Å to (T, ...) electrons."""
    squared = np.asarray(q_inv_A, dtype=np.float64)[..., None] ** 2
    kinds = zip(table.amplitudes, table.widths_A2, strict=True)
    return np.stack([(a * np.exp(-b * squared / 4)).sum(axis=-1) for a, b in kinds])


ALL_ELEMENTS = [gemmi.Element(number).name for number in range(1, 99)]


def test_every_element_from_hydrogen_to_californium_has_as_many_electrons_as_its_number() -> None:
    table = element_table(ALL_ELEMENTS)
    np.testing.assert_allclose(table.n_electrons, np.arange(1, 99), rtol=1e-12)
    np.testing.assert_allclose(form_factors(table, 0.0), np.arange(1, 99), rtol=1e-12)


def test_form_factors_are_those_of_the_international_tables_at_half_of_q() -> None:
    """f of carbon at sin θ/λ = 0, 0.1, 0.25 and 0.5 1/Å; four Gaussians fit the tabulated values to 0.03."""
    tabulated = [6.0, 5.126, 2.95, 1.685]
    found = form_factors(element_table(["C"]), 2 * np.array([0.0, 0.1, 0.25, 0.5]))[0]
    np.testing.assert_allclose(found, tabulated, atol=0.03)


def test_deuterium_scatters_as_hydrogen() -> None:
    table = element_table(["H", "D"])
    np.testing.assert_array_equal(table.amplitudes[0], table.amplitudes[1])


def test_anomalous_terms_rise_above_an_absorption_edge() -> None:
    """Selenium has its K edge at 12 658 eV; f'' there jumps from about 0.5 to about 3.8 electrons."""
    table = element_table(["Se", "C", "H"])
    below, above = table.anomalous_terms(12_600.0), table.anomalous_terms(12_700.0)
    assert below[0].imag == pytest.approx(0.5, abs=0.1)
    assert above[0].imag == pytest.approx(3.8, abs=0.2)
    assert above[0].real < -3
    assert abs(above[1]) < 0.02
    assert above[2] == 0
    assert (table.anomalous_terms(None) == 0).all()
    assert (table.without_anomalous_terms().anomalous_terms(12_700.0) == 0).all()


def test_a_gaussian_has_its_weight_and_width() -> None:
    table = gaussian_table([10.0, 20.0], [3.0, 5.0])
    np.testing.assert_allclose(
        form_factors(table, 0.05),
        [10 * np.exp(-2 * np.pi**2 * 9 / 400), 20 * np.exp(-2 * np.pi**2 * 25 / 400)],
    )


def test_joined_tables_keep_their_rows() -> None:
    joined = join_tables(element_table(["C", "O"]), gaussian_table([3.0], 2.0))
    q = np.linspace(0, 0.3, 5)
    np.testing.assert_allclose(form_factors(joined, q)[:2], form_factors(element_table(["C", "O"]), q))
    np.testing.assert_allclose(form_factors(joined, q)[2:], form_factors(gaussian_table([3.0], 2.0), q))
    assert joined.elements == ("C", "O", "")
    assert joined.anomalous_terms(7000.0)[2] == 0


@pytest.mark.parametrize("name", ["X", "Qq", "", "Fm"])
def test_an_element_without_a_form_factor_is_named(name: str) -> None:
    with pytest.raises(OrienteerError, match=f"no form factor is tabulated for '{name}'"):
        element_table(["C", name])
