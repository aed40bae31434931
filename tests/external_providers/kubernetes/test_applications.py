"""Pods grouped by the application that they belong to."""

import pytest

from external_providers.base import ExternalApplication
from external_providers.kubernetes.applications import group
from external_providers.kubernetes.pods import read_pod
from tests.kubernetes.objects import Document, pod


def grouped(*documents: Document) -> dict[str, ExternalApplication]:
    applications = group(kept for document in documents if (kept := read_pod(document)) is not None)
    by_id = {application.id: application for application in applications}
    assert len(by_id) == len(applications)
    return by_id


def test_pods_that_name_an_application_of_ours_are_one() -> None:
    found = grouped(
        pod("a", "driver", {"cpu": "1"}, labels={"rm-service/application": "42"}),
        pod("a", "executor", {"cpu": "2"}, phase="Pending", annotations={"rm-service/application": "42"}),
    )
    application = found["a/application/42"]
    assert application.allocated == {"k8s.vcore": 3000, "k8s.pods": 2}
    assert application.tags == {"rm-42"}
    assert application.state == "Running"


def test_the_label_is_believed_before_the_annotation() -> None:
    labels = {"rm-service/application": "1"}
    assert list(grouped(pod("a", "p", labels=labels, annotations={"rm-service/application": "2"}))) == [
        "a/application/1"
    ]


def test_pods_of_a_spark_application_are_one() -> None:
    labels = {"spark-app-selector": "spark-77"}
    found = grouped(
        pod("a", "driver", {"cpu": "1"}, labels=labels), pod("a", "exec-1", {"cpu": "1"}, labels=labels)
    )
    assert found["a/spark/spark-77"].allocated["k8s.vcore"] == 2000
    assert found["a/spark/spark-77"].kind == "spark"
    assert not found["a/spark/spark-77"].tags


def test_pods_of_a_job_are_one_whichever_label_names_it() -> None:
    found = grouped(
        pod("a", "j-1", labels={"batch.kubernetes.io/job-name": "j", "job-name": "j"}),
        pod("a", "j-2", labels={"job-name": "j"}),
    )
    assert found["a/job/j"].allocated == {"k8s.pods": 2}
    assert found["a/job/j"].kind == "job"


def test_a_pod_that_belongs_to_nothing_is_one_by_itself() -> None:
    found = grouped(pod("a", "p"), pod("a", "q", phase="Pending"), pod("b", "p"))
    assert set(found) == {"a/pod/p", "a/pod/q", "b/pod/p"}
    assert found["a/pod/q"].state == "Pending"


@pytest.mark.parametrize("value", ["", "a b", "a\nb", "x" * 64, "-", "Ä"])
def test_an_annotation_that_can_be_no_id_is_none(value: str) -> None:
    found = grouped(pod("a", "p", annotations={"rm-service/application": value}))
    assert not found["a/pod/p"].tags


def test_pods_with_long_names_have_ids_that_differ_and_are_not_too_long() -> None:
    space, name = "n" * 63, "p" * 250
    found = grouped(pod(space, f"{name}-1"), pod(space, f"{name}-2"))
    assert [len(own) for own in found] == [256, 256]


def test_one_name_in_two_namespaces_is_two_applications() -> None:
    labels = {"rm-service/application": "42"}
    assert set(grouped(pod("a", "p", labels=labels), pod("b", "p", labels=labels))) == {
        "a/application/42",
        "b/application/42",
    }
