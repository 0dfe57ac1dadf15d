"""The papers behind the methods, for the list at the end of a report."""

from __future__ import annotations

from dataclasses import dataclass

from orienteer.report.markup import Markup, element


@dataclass(frozen=True)
class Reference:
    """A paper: its short citation, full reference and DOI (empty if it has none)."""

    short: str
    full: str
    doi: str


EMC = Reference(
    "Loh & Elser 2009",
    "N. D. Loh and V. Elser, Reconstruction algorithm for single-particle diffraction imaging experiments, "
    "Physical Review E 80, 026705 (2009)",
    "10.1103/PhysRevE.80.026705",
)
MTIP = Reference(
    "Donatelli et al. 2017",
    "J. J. Donatelli, J. A. Sethian and P. H. Zwart, Reconstruction from limited single-particle diffraction "
    "data via simultaneous determination of state, orientation, intensity, and phase, Proceedings of the "
    "National Academy of Sciences 114, 7222 (2017)",
    "10.1073/pnas.1708217114",
)
FSC = Reference(
    "Harauz & van Heel 1986",
    "G. Harauz and M. van Heel, Exact filters for general geometry three dimensional reconstruction, "
    "Optik 73, 146 (1986)",
    "",
)
GOLD = Reference(
    "Rosenthal & Henderson 2003",
    "P. B. Rosenthal and R. Henderson, Optimal determination of particle orientation, absolute hand, and "
    "contrast loss in single-particle electron cryomicroscopy, Journal of Molecular Biology 333, 721 (2003)",
    "10.1016/j.jmb.2003.07.013",
)
HALF_BIT = Reference(
    "van Heel & Schatz 2005",
    "M. van Heel and M. Schatz, Fourier shell correlation threshold criteria, Journal of Structural Biology "
    "151, 250 (2005)",
    "10.1016/j.jsb.2005.05.009",
)
RANDOM_PHASES = Reference(
    "Chen et al. 2013",
    "S. Chen et al., High-resolution noise substitution to measure overfitting and validate resolution in 3D "
    "structure determination by single particle electron cryomicroscopy, Ultramicroscopy 135, 24 (2013)",
    "10.1016/j.ultramic.2013.06.004",
)
PRTF = Reference(
    "Chapman et al. 2006",
    "H. N. Chapman et al., High-resolution ab initio three-dimensional x-ray diffraction microscopy, Journal "
    "of the Optical Society of America A 23, 1179 (2006)",
    "10.1364/JOSAA.23.001179",
)
FIENUP = Reference(
    "Fienup 1982",
    "J. R. Fienup, Phase retrieval algorithms: a comparison, Applied Optics 21, 2758 (1982)",
    "10.1364/AO.21.002758",
)
RAAR = Reference(
    "Luke 2005",
    "D. R. Luke, Relaxed averaged alternating reflections for diffraction imaging, Inverse Problems 21, 37 "
    "(2005)",
    "10.1088/0266-5611/21/1/004",
)
DIFFERENCE_MAP = Reference(
    "Elser 2003",
    "V. Elser, Phase retrieval by iterated projections, Journal of the Optical Society of America A 20, 40 "
    "(2003)",
    "10.1364/JOSAA.20.000040",
)


def draw_references(references: list[Reference]) -> Markup:
    """The list of papers, each once."""
    points = []
    for reference in dict.fromkeys(references):
        link = (
            [", ", element("a", f"doi:{reference.doi}", href=f"https://doi.org/{reference.doi}")]
            if reference.doi
            else []
        )
        points.append(element("li", reference.full, *link, "."))
    return element("ol", *points)
