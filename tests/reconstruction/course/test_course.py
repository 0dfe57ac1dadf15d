"""When a stage is over, which start goes on, and why a run ends."""

from typing import Any

from orienteer.reconstruction.course.course import Course, Progress, Turn


def progress(log_likelihood: float, **changes: Any) -> Progress:
    values: dict[str, Any] = {
        "change": 0.0, "agreement": 0.8, "agreement_at_edge": 0.5, "resolution_A": 20.0,
        "iterations_done": 10, "perplexity": 100.0,
    }  # fmt: skip
    return Progress(log_likelihood, **(values | changes))


def turns(course: Course, *steps: Progress) -> list[Turn]:
    return [course.heed_limit(course.judge(step)) for step in steps]


def test_a_stage_goes_on_while_the_temperature_falls() -> None:
    course = Course(3, 1, 400)
    assert turns(course, *[progress(-100.0, iterations_done=0)] * 5) == ["go on"] * 5


def test_a_stage_ends_when_neither_likelihood_nor_agreement_gain() -> None:
    course = Course(3, 1, 400)
    steps = [
        progress(-100.0),
        progress(-99.0),
        progress(-98.99, agreement=0.85),
        progress(-98.98, agreement=0.85),
    ]
    assert turns(course, *steps) == ["go on", "go on", "go on", "next stage"]
    course.enter(1)
    # The likelihood of other pixels is no gain and no loss.
    assert turns(course, progress(-300.0), progress(-300.0)) == ["go on", "next stage"]


def test_a_stage_that_improves_for_ever_ends_all_the_same() -> None:
    course = Course(2, 1, 400)
    found = turns(course, *[progress(-100.0 + i, iterations_done=i) for i in range(61)])
    assert found == ["go on"] * 60 + ["next stage"]
    course.enter(1)
    found = turns(course, *[progress(-100.0 + i, iterations_done=i) for i in range(41)])
    assert found == ["go on"] * 40 + ["end"]
    assert course.reason == "The last stage was still improving slowly after 40 iterations."


def test_a_model_that_moves_in_many_small_steps_has_not_settled() -> None:
    slow, fast = Course(2, 1, 400), Course(2, 1, 400)
    steps = [0.02 * 0.97**i for i in range(12)], [0.02 * 0.5**i for i in range(12)]
    found = [
        turns(course, *[progress(-100.0, change=change) for change in changes])
        for course, changes in zip((slow, fast), steps, strict=True)
    ]
    assert found[0] == ["go on"] * 12
    assert "next stage" in found[1][:6]


def test_in_the_last_stage_small_steps_of_frames_that_know_their_poses_are_noise() -> None:
    changes = [0.02 * 0.97**i for i in range(12)]
    found = {}
    for perplexity in (9.0, 100.0):
        course = Course(2, 1, 400)
        course.enter(1)
        steps = [progress(-100.0, change=change, perplexity=perplexity) for change in changes]
        found[perplexity] = turns(course, *steps)
    assert found[9.0][:2] == ["go on", "end"]
    assert found[100.0] == ["go on"] * 12


def test_in_the_last_stage_a_likelihood_that_rises_is_no_noise() -> None:
    course = Course(2, 1, 400)
    course.enter(1)
    steps = [progress(-100.0 + 0.1 * i, perplexity=9.0, iterations_done=i + 1) for i in range(20)]
    assert turns(course, *steps) == ["go on"] * 20


def test_the_last_stage_ends_the_run_and_says_why() -> None:
    course = Course(2, 1, 400)
    course.enter(1)
    assert turns(course, progress(-5.0), progress(-5.0)) == ["go on", "end"]
    assert course.finished
    assert course.reason == "An iteration at full resolution gains nothing any more."


def test_a_map_that_others_have_found_is_not_searched_for_again() -> None:
    quick, slow = (Course(2, 1, 400, led_stage=1) for _ in range(2))
    changes = [0.3 * 0.45**i for i in range(4)], [0.3 * 0.8**i for i in range(4)]
    for course, own in zip((quick, slow), changes, strict=True):
        course.enter(1)
        steps = [progress(-100.0 + i, change=own[i], iterations_done=i + 1) for i in range(4)]
        found = turns(course, *steps[:3])
        assert found == ["go on", "go on", "end" if course is quick else "go on"]
    assert quick.reason == "The map that the run began with hardly changes any more."
    # By 0.8 in every step, 0.61 is still to come.
    assert turns(slow, steps[3]) == ["go on"]


def test_one_iteration_that_hardly_changes_the_map_that_others_have_found_is_enough() -> None:
    course = Course(2, 1, 400, led_stage=1)
    course.enter(1)
    assert turns(course, progress(-100.0, change=0.05, iterations_done=0)) == ["go on"]
    assert turns(course, progress(-90.0, change=0.05, iterations_done=1)) == ["end"]


def test_a_finer_stage_than_that_of_a_map_that_was_found_is_like_any_other() -> None:
    course = Course(2, 1, 400, led_stage=0)
    steps = [progress(-100.0 + i, change=0.3 * 0.5**i, iterations_done=i + 1) for i in range(4)]
    assert turns(course, *steps[:3]) == ["go on", "go on", "next stage"]
    course.enter(1)
    assert turns(course, *steps) == ["go on"] * 4


def test_checkpoints_that_know_of_no_leading_map_can_be_read() -> None:
    state = Course(2, 1, 400, iteration=7).state()
    del state["course/led_stage"]
    course = Course(2, 1, 400)
    course.restore(state)
    assert (course.iteration, course.led_stage) == (7, -1)


def test_no_finer_stage_is_tried_where_the_halves_do_not_agree() -> None:
    course = Course(5, 1, 400)
    noise = {"agreement_at_edge": 0.01, "resolution_A": 23.4}
    assert turns(course, progress(-5.0, **noise), progress(-5.0, **noise)) == ["go on", "end"]
    assert "At 23.4 A the two halves do not agree any more" in course.reason
    lost = Course(5, 1, 400)
    nothing = noise | {"agreement": 0.02}
    assert turns(lost, progress(-5.0, **nothing), progress(-5.0, **nothing))[-1] == "end"
    assert "agree on nothing" in lost.reason


def test_without_halves_nothing_is_known_about_agreement() -> None:
    course = Course(2, 1, 400)
    unknown = {"agreement": None, "agreement_at_edge": None}
    assert turns(course, progress(-5.0, **unknown), progress(-5.0, **unknown))[-1] == "next stage"


def test_every_start_has_its_turn_and_the_best_goes_on() -> None:
    course = Course(2, 3, 400)
    found = []
    for start in range(3):
        course.start = start
        course.enter(0)
        found.append(turns(course, progress(-5.0), progress(-5.0))[-1])
    assert found == ["next start", "next start", "best start"]
    assert course.iteration == 6


def test_the_limit_of_iterations_ends_a_run() -> None:
    course = Course(3, 1, 4)
    assert turns(course, *[progress(-9.0 + i) for i in range(4)])[-1] == "end"
    limit = "The limit of 4 iterations was reached before the end"
    assert course.reason == f"{limit}; a higher --iterations goes on from there."


def test_a_course_goes_on_from_its_state() -> None:
    course = Course(3, 2, 50)
    turns(course, progress(-7.0), progress(-6.0))
    other = Course(3, 2, 50)
    other.restore(course.state())
    assert other == course
    assert other.judge(progress(-6.0)) == course.judge(progress(-6.0))


def test_a_higher_limit_goes_on_with_the_turn_that_the_lower_one_cut_off() -> None:
    ended = Course(3, 1, 2)
    assert turns(ended, progress(-100.0), progress(-100.0)) == ["go on", "end"]
    assert "limit of 2 iterations" in ended.reason
    same, higher = Course(3, 1, 2), Course(3, 1, 9)
    for course in (same, higher):
        course.restore(ended.state())
    assert (same.reopen(), same.finished) == ("go on", True)
    assert (higher.reopen(), higher.finished, higher.reason) == ("next stage", False, "")
    assert higher.reopen() == "go on"  # once is enough


def test_a_run_that_ends_by_itself_at_its_limit_is_not_reopened() -> None:
    ended = Course(1, 1, 2)
    assert turns(ended, progress(-100.0), progress(-100.0)) == ["go on", "end"]
    assert "limit" not in ended.reason
    higher = Course(1, 1, 9)
    higher.restore(ended.state())
    assert (higher.reopen(), higher.finished) == ("go on", True)


def test_a_model_that_explains_the_frames_less_and_less_well_goes_no_further() -> None:
    course = Course(2, 1, 400)
    steps = [progress(-100.0 - i, change=0.5, iterations_done=i + 1, perplexity=9.0) for i in range(8)]
    assert turns(course, *steps) == ["go on"] * 6 + ["next stage"] + ["next stage"]


def test_frames_that_hardly_know_their_poses_take_more_steps_than_others() -> None:
    """What a model does first, after a random start or when it was made symmetric, says nothing."""
    changes = (0.014, 0.008, 0.006, 0.0045, 0.004)
    found = {}
    for perplexity in (9.0, 100.0):
        course = Course(2, 1, 400)
        steps = [
            progress(-100.0, change=change, iterations_done=i + 1, perplexity=perplexity)
            for i, change in enumerate(changes)
        ]
        found[perplexity] = turns(course, *steps)
    assert found[9.0][:3] == ["go on", "go on", "next stage"]
    assert found[100.0] == ["go on"] * 5


def heeded(course: Course, turn: Turn, iterations_done: int, *, better_by: int) -> Turn:
    """What becomes of a turn when sentinels are likelier than with a round object by so many limits."""
    return course.heed_sentinels(turn, iterations_done, is_no_better=better_by <= 1, is_worse=better_by < -1)


def test_a_model_that_shows_nothing_ends_the_run_with_its_stage() -> None:
    course = Course(2, 1, 400)
    assert heeded(course, "go on", 60, better_by=-2) == "go on"
    assert heeded(course, "next stage", 60, better_by=2) == "next stage"
    assert heeded(course, "next stage", 60, better_by=0) == "next stage"
    assert not course.found_nothing
    assert heeded(course, "next stage", 60, better_by=-2) == "end"
    assert course.found_nothing
    assert "no better than a round object" in course.reason


def test_faint_frames_have_all_the_patience_of_a_first_stage_to_leave_the_round_average() -> None:
    course = Course(1, 1, 400)
    # The random start is forgotten at once, and what comes after it moves the model only little.
    turn = turns(course, *[progress(-110.0, change=change, agreement=0.05) for change in (2.7, 0.4, 0.1)])[-1]
    assert turn == "end"
    assert heeded(course, turn, 3, better_by=-2) == "go on"
    assert (course.finished, course.found_nothing, course.reason) == (False, False, "")
    assert heeded(course, "next stage", 39, better_by=0) == "go on"
    assert heeded(course, "next stage", 3, better_by=2) == "next stage"
    assert heeded(course, "end", 60, better_by=0) == "end"
    later = Course(3, 1, 400, stage=1)
    assert heeded(later, "next stage", 3, better_by=-2) == "end"


def test_a_map_of_others_is_not_waited_for() -> None:
    course = Course(3, 1, 400, is_patient=False)
    assert heeded(course, "end", 3, better_by=0) == "end"
    assert course.found_nothing


def test_patience_ends_at_the_limit_and_goes_on_there_when_that_is_raised() -> None:
    course = Course(1, 1, 3)
    for change in (2.7, 0.4, 0.1):
        turn = course.judge(progress(-110.0, change=change, agreement=0.05))
    assert turn == "end"
    assert course.heed_limit(heeded(course, turn, 3, better_by=0)) == "end"
    assert (course.after_limit, course.found_nothing) == ("go on", False)
    assert "limit of 3 iterations" in course.reason
    raised = Course(1, 1, 9)
    raised.restore(course.state())
    assert (raised.reopen(), raised.finished) == ("go on", False)


def test_while_models_are_few_the_first_stage_ends_in_judging_their_number_whatever_the_halves_say() -> None:
    course = Course(2, 1, 400, grows=True)
    settled = progress(-100.0, agreement=0.01)
    assert turns(course, settled, settled) == ["go on", "judge states"]
    course.enter(0)
    # One that is to be split need not be perfect.
    found = turns(course, *[progress(-100.0 + i, iterations_done=i) for i in range(16)])
    assert found == ["go on"] * 15 + ["judge states"]
    course.enter(0)
    course.grows = False
    assert turns(course, progress(-1.0), progress(-1.0)) == ["go on", "next stage"]


def test_the_number_of_models_grows_from_the_best_start() -> None:
    course = Course(2, 2, 400, grows=True)
    assert turns(course, progress(-2.0), progress(-2.0))[-1] == "next start"
    course.start = 1
    course.enter(0)
    assert turns(course, progress(-1.0), progress(-1.0))[-1] == "best start"
    course.has_start = True
    course.enter(0)
    assert turns(course, progress(-1.0), progress(-1.0))[-1] == "judge states"
