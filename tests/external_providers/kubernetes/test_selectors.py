"""Selectors of namespaces: what Kubernetes would take is taken, what it would refuse is refused before."""

import pytest

from external_providers.kubernetes.selectors import selector_fault


@pytest.mark.parametrize(
    "text",
    [
        "team=data",
        "team == data , tier!=test",
        "team in (data, ml)",
        "team notin(data),!retired, managed",
        "kubernetes.io/metadata.name in (a,b)",
        "team=",
        "team in (,data)",
        "generation>2,generation < 9",
        " team ",
        "in in (in)",
    ],
)
def test_what_kubernetes_takes_is_a_selector(text: str) -> None:
    assert selector_fault(text) is None


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("team in (", 1),
        ("team in data", 1),
        ("a,team in (b", 3),
        ("a,,b", 3),
        ("a,", 3),
        ("team=a b", 1),
        ("team>=1", 1),
        ("team=-a", 1),
        ("Prefix.io/team", 1),
        (f"team={'x' * 64}", 1),
        ("team&zone", 1),
    ],
)
def test_what_it_refuses_is_none(text: str, at: int) -> None:
    assert selector_fault(text) == f"cannot be read from character {at} on"


def test_what_is_long_is_read_in_one_go() -> None:
    many = "team in (" + " , " * 600
    assert selector_fault(many) == "cannot be read from character 1 on"
    assert selector_fault(f"{many})") is None
