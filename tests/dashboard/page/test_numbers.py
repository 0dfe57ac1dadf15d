"""Numbers, axes and projections of the page, asked one by one."""

import math

import pytest


@pytest.fixture(scope="module")
def module_of(browser, tmp_path_factory, made_up):
    """Evaluate an expression with the names of one module of the page."""
    with made_up.serving(tmp_path_factory.mktemp("empty")) as (server, _):
        page = browser.new_page(timezone_id="Europe/Berlin")
        page.goto(f"http://127.0.0.1:{server.port}/?token={made_up.token}")
        page.wait_for_selector("#connection.open")

        def evaluated(module: str, expression: str):
            return page.evaluate(f"import('/static/{module}.js').then(m => ({expression}))")

        yield evaluated
        page.close()


@pytest.mark.parametrize(
    ("value", "words"),
    [("0", "0"), ("-1070.31", "−1070"), ("0.03125", "0.0313"), ("12345", "12\u2009345"), ("null", "–"),
     ("1e-7", "1.00e−7"), ("NaN", "–"), ("1e12", "1.00e+12")],
)  # fmt: skip
def test_numbers_have_three_digits_and_a_dash_where_there_is_none(module_of, value, words):
    assert module_of("words", f"m.number({value})") == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0123, "12 ms"), (45, "45 s"), (7800, "2 h 10 min"), (4e5, "5 d")]
)
def test_spans_are_told_in_the_unit_that_is_read(module_of, seconds, words):
    assert module_of("words", f"m.span({seconds})") == words


def test_ticks_lie_at_round_numbers_within_the_axis(module_of):
    ticks = module_of("axis", "new m.Axis().fit([[3, 97]]).ticks(5)")
    assert [value for value, _ in ticks] == [0, 20, 40, 60, 80, 100]
    ticks = module_of("axis", "new m.Axis({kind: 'log'}).fit([[0.02, 0, null, 5000]]).ticks(5)")
    assert [words for _, words in ticks] == ["0.1", "1", "10", "100", "1000"]
    assert module_of("axis", "new m.Axis({whole: true}).fit([[1, 3]]).ticks(9)") == [
        [1, "1"],
        [2, "2"],
        [3, "3"],
    ]


def test_ticks_of_time_are_those_of_the_clock_on_the_wall(module_of):
    """A quarter past seven in Berlin, in winter: one hour ahead of universal time."""
    ticks = module_of("axis", "new m.Axis({kind: 'time'}).fit([[1700028900, 1700032500]]).ticks(4)")
    assert [words for _, words in ticks] == ["07:15", "07:30", "07:45", "08:00", "08:15"]


def test_an_axis_gives_back_the_value_of_a_place(module_of):
    for kind in ("linear", "log"):
        back = module_of(
            "axis",
            f"(a => a.value(a.place(7, 50, 300), 50, 300))(new m.Axis({{kind: '{kind}'}}).fit([[1, 90]]))",
        )
        assert math.isclose(back, 7)


def test_rates_of_batches_are_shown_in_steps_without_holes(module_of):
    told = module_of(
        "rates", "m.inSteps({t_s: [100, 101, 102, 103], shots: [9, 9, 9, 9], hits: [1, 2, 3, 4]})"
    )
    assert told == {"t_s": [100, 101, 102, 103], "shots": [9, 9, 9, 9], "hits": [1, 2, 3, 4], "step": 1}
    # A batch every 1.7 s.
    told = module_of(
        "rates",
        """(times => m.inSteps({t_s: times, shots: times.map(() => 10), hits: times.map(() => 2)}))(
          Array.from({length: 30}, (_, i) => 1000 + Math.floor(1.7 * i)))""",
    )
    assert told["step"] == 2
    assert sum(told["shots"]) == 300
    assert sum(told["hits"]) == 60
    assert module_of("rates", "m.inSteps({})")["t_s"] == []


def test_the_map_of_directions_keeps_areas(module_of):
    """Of Mollweide's projection: the share of the map below a latitude is that of the sphere."""
    for sine in (-1.0, -0.3, 0.0, 0.5, 0.9):
        angle = module_of("coverage", f"m.auxiliary({sine})")
        below = 0.5 + (angle + math.sin(angle) * math.cos(angle)) / math.pi
        assert math.isclose(below, (1 + sine) / 2, abs_tol=1e-6)


def test_the_first_level_parts_inside_from_outside(module_of):
    level = module_of(
        "volume",
        "new m.Volume({bytes: Uint8Array.from({length: 64}, (_, i) => i < 50 ? i % 20 : 200)}).firstLevel()",
    )
    assert 19 < level <= 200


def test_the_first_level_goes_around_a_layer_that_has_just_that_value(module_of):
    """As in the report: a thousand voxels around, a layer about 95, a core at 200, and few in between."""
    values = [*[0] * 1000, *range(5, 85, 4), *[80 + i % 30 for i in range(100)], *[200] * 250]
    level = module_of("volume", f"new m.Volume({{bytes: Uint8Array.from({values})}}).firstLevel()")
    assert 30 < level < 80


def test_what_is_asked_for_meanwhile_is_done_once_more_and_never_twice_at_a_time(module_of):
    told = module_of(
        "server",
        """(async () => {
          let [now, most, times] = [0, 0, 0];
          const ask = m.oneAtATime(async () => {
            most = Math.max(most, ++now); times++;
            await new Promise(done => setTimeout(done, 20));
            now--;
          });
          await Promise.all([ask(), ask(), ask(), ask()]);
          return [most, times];
        })()""",
    )
    assert told == [1, 2]
