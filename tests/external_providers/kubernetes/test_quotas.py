"""The tightest of several ResourceQuotas."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from external_providers.base import AbsurdError
from external_providers.kubernetes.quotas import MEASURES, Tightest, read_quota, tightest
from tests.kubernetes.objects import Document, quota


def of(*documents: Document, counted: dict[str, int] | None = None) -> dict[str, Tightest]:
    return tightest(map(read_quota, documents), counted or {})


def test_the_smallest_hard_wins_in_each_dimension() -> None:
    found = of(
        quota("a", "one", {"requests.cpu": "4", "memory": "8Gi"}, {"requests.cpu": "1", "memory": "1Gi"}),
        quota("a", "two", {"cpu": "2", "requests.memory": "9Gi"}, {"cpu": "1", "requests.memory": "1Gi"}),
    )
    assert found == {
        "k8s.vcore": Tightest(2000, 1000, "two"),
        "k8s.memory": Tightest(8 * 2**30, 2**30, "one"),
    }


def test_both_names_of_cpu_in_one_quota_bind() -> None:
    used = {"cpu": "1", "requests.cpu": "1"}
    assert of(quota("a", "q", {"cpu": "5", "requests.cpu": "3"}, used))["k8s.vcore"].total == 3000


def test_of_quotas_that_lag_the_largest_use_counts() -> None:
    found = of(quota("a", "one", {"cpu": "4"}, {"cpu": "1"}), quota("a", "two", {"cpu": "8"}, {"cpu": "2"}))
    assert found["k8s.vcore"] == Tightest(4000, 2000, "one")


def test_pods_that_have_ended_count_for_objects_only() -> None:
    found = of(
        quota("a", "live", {"pods": "10"}, {"pods": "5"}),
        quota("a", "all", {"count/pods": "100"}, {"count/pods": "90"}),
    )
    assert found["k8s.pods"] == Tightest(10, 5, "live")


def test_what_is_in_force_counts_not_what_was_just_written() -> None:
    found = of(quota("a", "q", {"pods": "10"}, {"pods": "1"}, status_hard={"pods": "5"}))
    assert found["k8s.pods"] == Tightest(5, 1, "q")


def test_a_quota_that_nobody_has_counted_uses_what_the_pods_request() -> None:
    assert of(quota("a", "q", {"cpu": "2"}), counted={"k8s.vcore": 700})["k8s.vcore"] == Tightest(
        2000, 700, "q"
    )


@pytest.mark.parametrize("scope", [{"scopes": ["Terminating"]}, {"scopeSelector": {"matchExpressions": []}}])
def test_a_quota_of_some_pods_only_says_nothing(scope: dict[str, object]) -> None:
    document = quota("a", "q", {"cpu": "1"}, {"cpu": "1"})
    document["spec"] |= scope
    assert of(document) == {}


def test_limits_and_other_resources_say_nothing() -> None:
    hard = {"limits.cpu": "1", "requests.nvidia.com/gpu": "2", "configmaps": "9", "requests.storage": "1Ti"}
    assert of(quota("a", "q", hard, hard)) == {}


def test_fractions_are_rounded_to_the_safe_side() -> None:
    found = of(quota("a", "q", {"memory": "1500m"}, {"memory": "1m"}))
    assert found["k8s.memory"] == Tightest(1, 1, "q")


def test_a_negative_amount_is_absurd() -> None:
    with pytest.raises(AbsurdError, match=r"resourcequota a/q\.hard\.cpu: is below 0"):
        read_quota(quota("a", "q", {"cpu": "-1"}))


AMOUNTS = st.dictionaries(
    st.sampled_from(sorted(MEASURES)), st.tuples(st.integers(0, 50), st.integers(0, 60)), max_size=6
)


@given(st.lists(st.tuples(AMOUNTS, st.booleans()), max_size=6))
def test_never_more_room_than_any_quota_leaves_and_never_a_total_that_none_has(
    quotas: list[tuple[dict[str, tuple[int, int]], bool]],
) -> None:
    documents = [
        quota(
            "a",
            f"q{number}",
            {key: str(hard) for key, (hard, _) in amounts.items()},
            {key: str(used) for key, (_, used) in amounts.items()},
            scopes=["BestEffort"] if scoped else [],
        )
        for number, (amounts, scoped) in enumerate(quotas)
    ]
    bounds = [
        bound for document in map(read_quota, documents) if not document.scoped for bound in document.bounds
    ]
    found = of(*documents)
    assert set(found) == {bound.dimension for bound in bounds}
    for bound in bounds:
        chosen = found[bound.dimension]
        assert chosen.total - chosen.used <= bound.hard - (bound.used or 0)
        assert chosen.total in {other.hard for other in bounds if other.dimension == bound.dimension}
        assert chosen.used in {other.used for other in bounds if other.dimension == bound.dimension}


@given(st.lists(AMOUNTS, min_size=1, max_size=5), st.randoms())
def test_the_order_of_quotas_does_not_matter(
    quotas: list[dict[str, tuple[int, int]]], chance: random.Random
) -> None:
    documents = [
        quota(
            "a", "q", {k: str(h) for k, (h, _) in found.items()}, {k: str(u) for k, (_, u) in found.items()}
        )
        for found in quotas
    ]
    mixed = list(documents)
    chance.shuffle(mixed)
    assert of(*documents) == of(*mixed)
