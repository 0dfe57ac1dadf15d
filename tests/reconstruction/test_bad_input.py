"""What a user can hand over by mistake: one sentence, or a remark, and never NaN."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.errors import GeometryMismatch, OrienteerError
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.settings import EmcSettings
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import Patterns


def reconstruct(source: Any, **settings: Any) -> Emc:
    return Emc(source, EmcSettings(symmetry="I", **settings), device="cpu")


def is_sound(emc: Emc, n_steps: int = 3) -> bool:
    """Whether some iterations leave finite models, poses and fluences."""
    steps = [emc.step() for _ in range(n_steps) if not emc.finished]
    found = emc.orientations()
    numbers = [found[name] for name in ("quaternion", "fluence", "log_likelihood", "confidence")]
    finite = all(np.isfinite(values).all() for values in [emc.models, *numbers])
    return finite and np.isfinite(steps[-1].log_likelihood)


def changed(tiny: Any, dtype: Any = np.int64) -> Any:
    return np.array(tiny.patterns.dense()).astype(dtype)


def first_frames(tiny: Any, n: int) -> Any:
    columns = {name: values[:n] for name, values in tiny.patterns.columns.items()}
    return tiny.source(frames=changed(tiny)[:n], event_id=tiny.patterns.event_id[:n], columns=columns)


def test_no_photons(tiny: Any) -> None:
    with pytest.raises(OrienteerError, match="not one photon"):
        reconstruct(tiny.source(frames=np.zeros_like(changed(tiny))))


@pytest.mark.parametrize(("n_left", "words"), [(0, "no pixels"), (3, "3 pixels")])
def test_a_mask_that_leaves_too_little(tiny: Any, n_left: int, words: str) -> None:
    mask = np.full(tiny.patterns.n_pixels, 2, np.uint8)
    mask[:n_left] = 0
    mask[10:20] = 1
    with pytest.raises(OrienteerError, match=f"leaves {words} that could orient"):
        reconstruct(tiny.source(detector=tiny.detector.with_mask(mask)))


def test_a_background_of_gaussian_noise_is_refused_before_anything_begins(tiny: Any) -> None:
    with pytest.raises(OrienteerError, match="Gaussian likelihood cannot use a background"):
        reconstruct(tiny.source(), likelihood="gaussian", background="estimate")


def test_one_frame(tiny: Any) -> None:
    with pytest.raises(OrienteerError, match="1 frame cannot be split"):
        reconstruct(first_frames(tiny, 1))


def test_few_frames_are_remarked_upon_and_do_no_harm(tiny: Any) -> None:
    emc = reconstruct(first_frames(tiny, 12), diameter_A=200)
    assert [remark for remark in emc.remarks if "12 frames are few" in remark]
    assert is_sound(emc)


def test_frames_of_another_shape(tiny: Any) -> None:
    with pytest.raises(GeometryMismatch):
        reconstruct(InMemorySource(Patterns(changed(tiny)[:, :100])).with_detector(tiny.detector))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_no_numbers(tiny: Any, value: float) -> None:
    frames = changed(tiny, np.float32)
    frames[3, 5] = value
    with pytest.raises(OrienteerError, match=r"frame 3 .*not a finite number"):
        reconstruct(tiny.source(frames=frames))
    # Where the mask forbids the pixel it may hold anything.
    mask = np.zeros(tiny.patterns.n_pixels, np.uint8)
    mask[5] = 2
    masked = tiny.source(frames=frames, detector=tiny.detector.with_mask(mask))
    assert is_sound(reconstruct(masked, diameter_A=200))


def test_calibrated_signal_may_be_negative(tiny: Any) -> None:
    noise = np.random.default_rng(1).normal(0, 0.3, (len(tiny.patterns), tiny.patterns.n_pixels))
    frames = (changed(tiny) + noise - 0.02).astype(np.float32)
    for likelihood in ("gaussian", "negative-binomial", "poisson"):
        assert is_sound(reconstruct(tiny.source(frames=frames), diameter_A=200, likelihood=likelihood))


def test_counts_too_large_for_single_precision_are_remarked_upon(tiny: Any) -> None:
    frames = changed(tiny)
    frames[3, 5] = 2**25 + 1
    emc = reconstruct(tiny.source(frames=frames), diameter_A=200)
    assert [remark for remark in emc.remarks if "33,554,433" in remark]
    assert is_sound(emc)


def test_frames_that_are_all_the_same(tiny: Any) -> None:
    emc = reconstruct(tiny.source(frames=np.ones_like(changed(tiny))))
    assert [remark for remark in emc.remarks if "the size of the particle cannot be measured" in remark]
    assert is_sound(emc)


def test_a_particle_too_large_for_the_pixels_is_remarked_upon(tiny: Any) -> None:
    emc = reconstruct(tiny.source(), diameter_A=1000, oversampling=2)
    assert [remark for remark in emc.remarks if "speckles smaller than a pixel" in remark]


def test_a_resolution_that_leaves_no_pixel(tiny: Any) -> None:
    with pytest.raises(OrienteerError, match=r"resolution_A = 5000 leaves no pixels") as caught:
        reconstruct(tiny.source(), resolution_A=5000)
    assert "The pixels reach from" in caught.value.hint


def test_two_frames_of_one_name(tiny: Any) -> None:
    names = tiny.patterns.event_id.copy()
    names[7] = names[8]
    with pytest.raises(OrienteerError, match="same event id"):
        reconstruct(tiny.source(event_id=names))


def test_data_that_do_not_say_their_wavelength(tiny: Any) -> None:
    with pytest.raises(OrienteerError, match="at which wavelength"):
        reconstruct(tiny.source(columns={}))


def test_a_symmetry_that_does_not_exist(tiny: Any) -> None:
    with pytest.raises(OrienteerError, match="no point group 'Q7'"):
        tiny.emc(symmetry="Q7")


def test_a_background_that_is_not_there_or_does_not_fit(tiny: Any, tmp_path: Path) -> None:
    path = tmp_path / "background.npy"
    with pytest.raises(OrienteerError, match=r"background\.npy"):
        reconstruct(tiny.source(), background_file=str(path))
    for wrong in (np.ones(7), np.full(tiny.patterns.n_pixels, np.nan), np.full(tiny.patterns.n_pixels, -1.0)):
        np.save(path, wrong)
        with pytest.raises(OrienteerError, match="one finite number, not negative, per pixel"):
            reconstruct(tiny.source(), background_file=str(path))


def test_little_memory_is_enough(tiny: Any) -> None:
    """The same numbers in more and smaller pieces; fluences, if any, are grouped in each piece by itself."""
    results = []
    for memory_GiB in (1.0, 1e-5):
        emc = tiny.emc(symmetry="I", memory_GiB=memory_GiB, fluence="constant")
        results.append((emc.plan.batch_frames, [emc.step().log_likelihood for _ in range(3)]))
    assert results[1][0] < results[0][0]
    assert results[1][1] == pytest.approx(results[0][1], rel=1e-5)
