"""Settings: defaults, a file over them, the environment over both; what is unknown or wrong is named."""

from pathlib import Path

import pytest
import yaml

from rm_service.bundled import bundled
from rm_service.domain.label_rules import LabelRules
from rm_service.settings import VARIABLES, Settings, SettingsError, is_loopback, read_settings


def told(file: Path | None = None, **environment: str) -> Settings:
    return read_settings(file, environment)


def written(folder: Path, text: str) -> Path:
    file = folder / "own.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_defaults_are_those_of_the_contract() -> None:
    settings = told()
    assert settings.database_url == "sqlite:///var/rm.db"
    assert (settings.http_bind, settings.grpc_bind) == ("127.0.0.1:8310", "127.0.0.1:8311")
    assert (settings.lock_seconds, settings.sweep_seconds, settings.workers) == (720, 5, 1)
    assert (settings.log_level, settings.log_format, settings.auth) == ("info", "console", "auto")
    assert LabelRules.from_document(settings.rules["label_rules"]).rules


def test_a_file_replaces_the_keys_that_it_names(tmp_path: Path) -> None:
    settings = told(written(tmp_path, "lock_seconds: 60\nlabel_rules: []\n"))
    assert settings.lock_seconds == 60
    assert settings.rules["label_rules"] == []
    assert settings.sweep_seconds == 5


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "lock_seconds: 60\n")
    assert told(file, RM_LOCK_SECONDS="90").lock_seconds == 90


def test_every_setting_has_a_variable_and_every_variable_is_described() -> None:
    named = yaml.safe_load(bundled("config/default.yaml").read_text(encoding="utf-8")).keys()
    assert set(VARIABLES) == {f"RM_{name.upper()}" for name in named} - {"RM_CONVERSIONS", "RM_LABEL_RULES"}
    text = (Path(__file__).parent.parent / "docs" / "settings.md").read_text(encoding="utf-8")
    for variable in VARIABLES:
        assert f"| `{variable}` |" in text


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert told(written(tmp_path, "")) == told()


@pytest.mark.parametrize("name", ["RM_LOCK_SECOND", "RM_LABEL_RULES", "RM_X"])
def test_an_unknown_variable_is_refused_by_name(name: str) -> None:
    with pytest.raises(SettingsError) as caught:
        told(None, **{name: "1"})
    assert list(caught.value.faults) == [name]


@pytest.mark.parametrize("name", ["RM_URL", "RM_TOKEN", "RM_TEST_POSTGRES", "PATH", "RMX"])
def test_variables_of_others_are_let_be(name: str) -> None:
    assert told(None, **{name: "x"}) == told()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LOCK_SECONDS", "0"),
        ("LOCK_SECONDS", "5.7"),
        ("LOCK_SECONDS", "many"),
        ("WORKERS", "0"),
        ("HTTP_BIND", "127.0.0.1"),
        ("HTTP_BIND", ":8310"),
        ("HTTP_BIND", "127.0.0.1:65536"),
        ("HTTP_BIND", "off"),
        ("GRPC_BIND", "x"),
        ("AUTH", "maybe"),
        ("LOG_LEVEL", "loud"),
        ("LOG_FORMAT", "xml"),
        ("DATABASE_URL", "mysql://x/y"),
        ("DATABASE_URL", "nonsense"),
        ("DATABASE_URL", "sqlite://"),
        ("LIMITS_URL", "conf:8080"),
        ("LIMITS_URL", "ftp://conf/limits"),
        ("LIMITS_URL", "http://"),
        ("LIMITS_URL", "http://conf:x/"),
        ("LIMITS_URL", "http://conf/a b"),
        ("LIMITS_URL", "http://rm:hunter2@conf/"),
        ("LIMITS_KEYS", ""),
        ("LIMITS_KEYS", "user,"),
        ("LIMITS_KEYS", "user+!"),
        ("LIMITS_KEYS", "a+b+c+d+e+f+g+h+i"),
        ("LIMITS_STALE_POLICY", "maybe"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_its_variable(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        told(None, **{f"RM_{name}": value})
    assert caught.value.source == "the environment"
    assert list(caught.value.faults) == [f"RM_{name}"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("lock_second: 5", "lock_second"),
        ("lock_seconds: 5.7", "lock_seconds"),
        ("lock_seconds: true", "lock_seconds"),
        ("- a", "(the file)"),
        ("a: [", "(the file)"),
    ],
)
def test_a_fault_in_a_file_names_the_file_and_the_key(tmp_path: Path, text: str, fault: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        told(file)
    assert caught.value.source == str(file)
    assert list(caught.value.faults) == [fault]


def test_limits_are_asked_for_by_sets_of_keys(tmp_path: Path) -> None:
    assert told().limits_keys == [("user",), ("creator", "engineType", "user")]
    assert told(None, RM_LIMITS_KEYS="user, team+app,app+team").limits_keys == [("user",), ("app", "team")]
    assert told(written(tmp_path, "limits_keys: [[tenant]]")).limits_keys == [("tenant",)]


@pytest.mark.parametrize("text", ["7", "[user]", "[[]]", "[[7]]", "{user: 1}", "user+user"])
def test_other_things_are_no_sets_of_keys(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        told(written(tmp_path, f"limits_keys: {text}"))
    assert list(caught.value.faults) == ["limits_keys"]


def test_limits_are_not_stale_before_they_are_asked_for_again() -> None:
    with pytest.raises(SettingsError, match="limits_stale_seconds: must not be less"):
        told(RM_LIMITS_REFRESH_SECONDS="60", RM_LIMITS_STALE_SECONDS="59")


def test_what_is_shown_holds_no_secret_of_an_address() -> None:
    shown = told(RM_LIMITS_URL="https://conf/limits?key=hunter2").shown()
    assert shown["limits_url"] == "https://conf/limits"


def test_more_than_one_process_needs_postgresql() -> None:
    with pytest.raises(SettingsError, match="workers: SQLite"):
        told(RM_WORKERS="2")
    assert told(RM_WORKERS="2", RM_DATABASE_URL="postgresql+psycopg://rm@db/rm").workers == 2


def test_what_is_shown_hides_the_password_and_leaves_out_the_rules() -> None:
    shown = told(RM_DATABASE_URL="postgresql+psycopg://rm:hunter2@db/rm").shown()
    assert "hunter2" not in str(shown)
    assert "rules" not in shown
    assert shown["lock_seconds"] == 720


@pytest.mark.parametrize(
    ("auth", "bind", "needed"),
    [
        ("auto", "127.0.0.1:8310", False),
        ("auto", "[::1]:8310", False),
        ("auto", "localhost:8310", False),
        ("auto", "0.0.0.0:8310", True),
        ("auto", "10.0.0.5:8310", True),
        ("token", "127.0.0.1:8310", True),
        ("none", "0.0.0.0:8310", False),
    ],
)
def test_who_needs_a_token(auth: str, bind: str, needed: bool) -> None:
    assert told(RM_AUTH=auth, RM_HTTP_BIND=bind).needs_token is needed


def test_a_name_that_is_not_an_address_is_not_taken_for_loopback() -> None:
    assert not is_loopback("localhost.example.com:80")
