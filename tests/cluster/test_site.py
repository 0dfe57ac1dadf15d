"""Templates of sites: those that come along, those of users, and what is wrong with some."""

from pathlib import Path

import pytest

from orienteer.cluster.settings import ClusterSettings
from orienteer.cluster.site import WORDS, all_sites, find_site, read_site
from orienteer.errors import FileError, SettingsError

GOOD = '#!/bin/bash\n#: time = "2h"\n#: needs = ["account"]\n{{options}}\n{{environment}}\n{{work}}\n'


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "orienteer" / "sites"
    folder.mkdir(parents=True)
    return folder


def test_every_site_that_comes_along_is_whole_and_says_what_it_is_for() -> None:
    sites = all_sites()
    assert [site.name for site in sites] == ["generic", "maxwell", "perlmutter"]
    for site in sites:
        assert site.about.endswith(".")


def test_the_page_on_clusters_explains_every_word() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "cluster.md").read_text()
    assert not [word for word in WORDS if f"`{{{{{word}}}}}`" not in page]


def test_a_template_of_the_user_hides_one_of_the_same_name(own_folder: Path) -> None:
    (own_folder / "maxwell.sh").write_text(GOOD)
    (own_folder / "ours.sh").write_text(GOOD)
    assert find_site("maxwell").path == own_folder / "maxwell.sh"
    assert [site.name for site in all_sites()] == ["generic", "maxwell", "ours", "perlmutter"]


def test_what_the_user_gives_wins_over_the_site_and_the_site_over_defaults(tmp_path: Path) -> None:
    path = tmp_path / "site.sh"
    path.write_text(GOOD)
    site = find_site(str(path))
    merged = site.settings(ClusterSettings(account="a1", nodes=1))
    assert (merged.account, merged.time, merged.nodes) == ("a1", "2h", 1)
    assert site.settings(ClusterSettings(account="a1", time="3h")).time == "3h"


def test_what_a_site_needs_must_be_given(own_folder: Path) -> None:
    (own_folder / "ours.sh").write_text(GOOD)
    with pytest.raises(SettingsError, match="jobs for the site ours need --account"):
        find_site("ours").settings(ClusterSettings())


def test_a_site_that_is_not_there_is_told_with_one_that_is() -> None:
    with pytest.raises(SettingsError) as refused:
        find_site("perlmuter")
    assert refused.value.hint == "Did you mean 'perlmutter'?"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{options}}", "does not begin with a #! line"),
        ("#!/bin/sh\n{{options}}\n{{environment}}\n", "lacks {{work}}"),
        (GOOD.replace("{{work}}", "{{wrok}}"), "line 6 has an unknown word {{wrok}}"),
        (GOOD.replace('"2h"', "2h"), "has an invalid line with #:"),
        (GOOD.replace('"account"', '"money"'), "needs 'money', which is no setting"),
    ],
)
def test_a_wrong_template_is_refused_in_words(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "site.sh"
    path.write_text(text)
    with pytest.raises(FileError) as refused:
        read_site(path)
    assert said in refused.value.message
    assert str(path) in refused.value.message


def test_a_wrong_setting_of_a_site_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "site.sh"
    path.write_text(GOOD.replace("time", "tiem"))
    with pytest.raises(SettingsError, match="line 2: unknown key 'tiem'") as refused:
        read_site(path)
    assert refused.value.hint == "Did you mean 'time'?"


def test_a_site_that_is_a_missing_file_says_so() -> None:
    with pytest.raises(FileError, match=r"nowhere/site\.sh"):
        find_site("nowhere/site.sh")
