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
    (home / settings_file.FILE).write_text("# ours\nllm_timeout_s = 30.0  # slow network\n")
    settings_file.write({"route_max_calls": 7, "llm_mode": "replay"}, home)
    text = (home / settings_file.FILE).read_text()
    assert text.startswith("# ours\nllm_timeout_s = 30.0  # slow network\n")
    assert (load().route_max_calls, load().llm_mode) == (7, "replay")
    assert (of("route_max_calls").value, of("route_max_calls").source) == (7, "file")
    settings_file.write({"route_max_calls": None}, home)
    assert (load().route_max_calls, of("route_max_calls").source) == (40, "default")
    assert load().llm_mode == "replay"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"route_max_calls": 0}, "route_max_calls"),
        ({"llm_mode": "sometimes"}, "llm_mode"),
        ({"nope": 1}, "setting nope cannot be changed here"),
        ({"home": "/tmp/elsewhere"}, "setting home"),
        ({"web_search": "ftp://x"}, "web_search"),
        ({"only_public": None}, "setting only_public cannot be changed here"),
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
    file = home / settings_file.FILE
    for broken, said in (("llm = [", "not valid TOML"), ("k = " + "[" * 5_000, "nested too deeply")):
        file.write_text(broken)
        with pytest.raises(BadInput, match=said):
            settings_file.listed(Settings.model_construct(home=home))
        with pytest.raises(BadInput, match=said):
            settings_file.write({"route_max_calls": 7}, home)
    file.unlink()
    file.mkdir()
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


PRIVATE = "10.0.0.7 192.168.1.1:81 172.16.0.1 [fc00::1] 127.0.0.1:8000 localhost 0x7f.1"


@pytest.mark.parametrize("name", settings_file.ADDRESSES)
def test_a_page_that_others_can_reach_names_public_addresses_alone(home, name):
    for host in PRIVATE.split():
        with pytest.raises(BadInput, match=f"setting {name}: .* must be public"):
            settings_file.write({name: f"http://{host}/v1"}, home, exposed=True)
        assert not (home / settings_file.FILE).exists()
        settings_file.write({name: f"http://{host}/v1"}, home)
        assert load().private(name)
        (home / settings_file.FILE).unlink()
    for host in ("169.254.169.254", "2852039166", "metadata.google.internal"):  # where clouds keep keys
        for exposed in (True, False):
            with pytest.raises(BadInput, match=f"setting {name}: .*called"):
                settings_file.write({name: f"http://{host}/v1"}, home, exposed=exposed)


def test_an_address_of_such_a_page_stays_marked_until_another_is_given(home):
    for name in settings_file.ADDRESSES:
        settings_file.write({name: "http://models.example/v1"}, home, exposed=True)
    assert not any(load().private(name) for name in settings_file.ADDRESSES)
    settings_file.write({"route_max_calls": 7}, home)
    assert not load().private("llm_base_url")
    again = {"llm_base_url": "http://models.example/v1"}
    settings_file.write(again, home)  # said again, where nobody else could
    assert load().private("llm_base_url")
    settings_file.write({"reranker": "llm", "web_search": None}, home, exposed=True)
    assert load().only_public == "self_rag_base_url"
    settings_file.write({"self_rag_base_url": None}, home, exposed=True)
    assert "only_public" not in (home / settings_file.FILE).read_text()
    assert not of("only_public").editable
