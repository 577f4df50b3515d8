"""Settings changed from a page: checked, written whole, and no secret comes back out."""

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.domain import settings_file
from core.domain.errors import BadInput, Unavailable
from core.domain.settings import Settings, load


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ROUTESCOPE_HOME", str(tmp_path))
    for name in Settings.model_fields:
        if name not in settings_file.FIXED:
            monkeypatch.delenv(f"ROUTESCOPE_{name.upper()}", raising=False)
    return tmp_path


def of(name):
    return next(one for one in settings_file.listed(load()) if one.name == name)


def test_what_is_written_is_in_force_and_can_be_taken_out_again(home):
    settings_file.write({"route_max_calls": 7, "llm_mode": "replay"}, home)
    assert (load().route_max_calls, load().llm_mode) == (7, "replay")
    assert (of("route_max_calls").value, of("route_max_calls").source) == (7, "file")
    settings_file.write({"route_max_calls": None}, home)
    assert load().route_max_calls == 40
    assert of("route_max_calls").source == "default"
    assert load().llm_mode == "replay"


def test_a_file_nested_too_deeply_is_refused(home):
    (home / settings_file.FILE).write_text("route_max_calls = " + "[" * 5_000)
    with pytest.raises(BadInput, match="nested too deeply"):
        load()
    with pytest.raises(BadInput, match="nested too deeply"):
        settings_file.write({"route_max_calls": 7}, home)


def test_comments_and_order_of_the_file_stay(home):
    (home / settings_file.FILE).write_text("# ours\nllm_timeout_s = 30.0  # slow network\n")
    settings_file.write({"route_max_calls": 7}, home)
    text = (home / settings_file.FILE).read_text()
    assert text.startswith("# ours\nllm_timeout_s = 30.0  # slow network\n")
    assert "route_max_calls = 7" in text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"route_max_calls": 0}, "route_max_calls"),
        ({"llm_mode": "sometimes"}, "llm_mode"),
        ({"nope": 1}, "setting nope cannot be changed here"),
        ({"home": "/tmp/elsewhere"}, "setting home"),
        ({"web_search": "ftp://x"}, "web_search"),
    ],
)
def test_a_mistake_is_told_and_changes_nothing(home, changes, said):
    settings_file.write({"llm_timeout_s": 30.0}, home)
    before = (home / settings_file.FILE).read_bytes()
    with pytest.raises(BadInput, match=said):
        settings_file.write({"route_max_tokens": 9, **changes}, home)
    assert (home / settings_file.FILE).read_bytes() == before


@pytest.mark.trust
def test_a_secret_goes_in_and_is_shown_nowhere(home):
    settings_file.write({"llm_base_url": "https://models.example/v1", "llm_api_key": "sk-very-secret"}, home)
    assert load().llm_api_key.get_secret_value() == "sk-very-secret"
    shown = settings_file.listed(load())
    assert "very-secret" not in repr(shown)
    key = of("llm_api_key")
    assert (key.value, key.given, key.secret) == (None, True, True)
    assert stat.S_IMODE((home / settings_file.FILE).stat().st_mode) == 0o600


def test_a_wrong_value_beside_a_secret_does_not_repeat_it(home):
    with pytest.raises(BadInput) as wrong:
        settings_file.write({"llm_api_key": "sk-very-secret", "llm_timeout_s": -1}, home)
    assert "very-secret" not in str(wrong.value)


@pytest.mark.trust
@pytest.mark.parametrize(("address", "key"), settings_file.KEY_OF.items())
def test_a_key_never_follows_its_address_to_another_place(home, address, key):
    settings_file.write({address: "https://ours.example/v1", key: "sk-ours"}, home)
    settings_file.write({address: "https://theirs.example/v1"}, home)
    assert getattr(load(), key) is None
    settings_file.write({address: "https://ours.example/v1", key: "sk-new"}, home)
    assert getattr(load(), key).get_secret_value() == "sk-new"
    settings_file.write({address: "https://ours.example/v1"}, home)  # the same place
    assert getattr(load(), key).get_secret_value() == "sk-new"


def test_the_environment_goes_first_and_its_key_stays_with_its_address(home, monkeypatch):
    monkeypatch.setenv("ROUTESCOPE_LLM_MODE", "record")
    monkeypatch.setenv("ROUTESCOPE_LLM_API_KEY", "sk-env")
    assert (of("llm_mode").source, of("llm_mode").editable) == ("environment", False)
    with pytest.raises(BadInput, match="ROUTESCOPE_LLM_MODE takes precedence"):
        settings_file.write({"llm_mode": "live"}, home)
    with pytest.raises(BadInput, match="its key comes from the environment"):
        settings_file.write({"llm_base_url": "https://theirs.example/v1"}, home)
    assert not (home / settings_file.FILE).exists()


def test_a_broken_file_or_place_is_named(home):
    (home / settings_file.FILE).write_text("llm = [")
    with pytest.raises(BadInput, match="not valid TOML"):
        settings_file.listed(Settings.model_construct(home=home))
    (home / settings_file.FILE).unlink()
    (home / settings_file.FILE).mkdir()
    with pytest.raises(Unavailable, match=r"routescope\.toml"):
        settings_file.write({"llm_timeout_s": 5.0}, home)


def test_every_field_has_a_form(home):
    for one in settings_file.listed(load()):
        assert one.help, one.name
        if one.name not in settings_file.FIXED and not one.secret:
            assert one.choices or one.kind in (str, int, float), (one.name, one.kind)


def test_two_who_write_at_once_leave_a_whole_file(home):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: settings_file.write({"route_max_calls": 1 + n}, home), range(24)))
    assert 1 <= load().route_max_calls <= 24
    assert [path.name for path in home.iterdir()] == [settings_file.FILE]


PRIVATE = (
    "http://10.0.0.7/v1",
    "http://192.168.1.1:81/v1",
    "http://172.16.0.1/v1",
    "http://[fc00::1]/v1",
    "http://127.0.0.1:8000/v1",
    "http://localhost/v1",
    "http://0x7f.1/v1",
)


@pytest.mark.parametrize("name", settings_file.ADDRESSES)
def test_a_page_that_others_can_reach_names_public_addresses_alone(home, name):
    for address in PRIVATE:
        with pytest.raises(BadInput, match=f"setting {name}: .* must be public"):
            settings_file.write({name: address}, home, exposed=True)
        assert not (home / settings_file.FILE).exists()
        settings_file.write({name: address}, home)
        assert load().private(name)
        settings_file.write({name: None}, home)
        (home / settings_file.FILE).unlink()


@pytest.mark.parametrize("exposed", [True, False])
@pytest.mark.parametrize("name", settings_file.ADDRESSES)
def test_no_page_names_an_address_where_clouds_keep_keys(home, name, exposed):
    for address in (
        "http://169.254.169.254/v1",
        "http://2852039166/v1",
        "http://metadata.google.internal/v1",
    ):
        with pytest.raises(BadInput, match=f"setting {name}: .*called"):
            settings_file.write({name: address}, home, exposed=exposed)


def test_an_address_of_such_a_page_stays_marked_until_another_is_given(home):
    for name in settings_file.ADDRESSES:
        settings_file.write({name: "http://models.example/v1"}, home, exposed=True)
    assert not any(load().private(name) for name in settings_file.ADDRESSES)
    settings_file.write({"route_max_calls": 7}, home)
    assert not load().private("llm_base_url")
    settings_file.write(
        {"llm_base_url": "http://models.example/v1"}, home
    )  # said again, where nobody else could
    assert load().private("llm_base_url")
    settings_file.write({"reranker": "llm", "web_search": None}, home, exposed=True)
    assert load().only_public == "self_rag_base_url"
    settings_file.write({"self_rag_base_url": None}, home, exposed=True)
    assert "only_public" not in (home / settings_file.FILE).read_text()


def test_the_mark_is_no_setting_that_a_page_can_take_away(home):
    with pytest.raises(BadInput, match="setting only_public cannot be changed here"):
        settings_file.write({"only_public": None}, home)
    assert not of("only_public").editable
