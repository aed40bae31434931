"""The scheduler's service: what a resource manager asks for is carried out, or there is a reason why not."""

from dataclasses import replace

import pytest

from rm_service.domain import operations as op
from rm_service.domain.amounts import INT64_MAX
from rm_service.domain.application import State
from rm_service.domain.clients import Termination
from rm_service.services.si.names import REQUIRED_NODE
from rm_service.services.si.requests import (
    Ask,
    Dialect,
    ExistingAllocation,
    NewApplication,
    NodeAction,
    NodeChange,
    Preemption,
    Release,
    RemovedApplication,
)
from rm_service.services.si.scheduler import CHUNK, SchedulerService
from tests.client_words import kinds, of_kind, phases
from tests.ledger.telling import rows, told
from tests.services.shim import HERE, Shim, app, ask, node, reasons, running_there


class TestApplications:
    @pytest.mark.parametrize(
        ("request_", "reason"),
        [
            (
                app(partition="elsewhere"),
                "Failed to add application app-1 to partition [rm-1]elsewhere, partition doesn't exist",
            ),
            (
                app(partition="[rm-2]default"),
                "Failed to add application app-1 to partition [rm-2]default, partition doesn't exist",
            ),
            (app(""), "an application needs an ID"),
            (app("a\tb"), "control character"),
            (app(user=""), "empty user cannot resolve"),
            (app(user="a b"), "invalid username, it contains invalid characters"),
            (app(user="nobody-knows", groups=()), "user resolution failed: user 'nobody-knows' is unknown"),
            (
                app(queue="root.nowhere"),
                "failed to place application app-1: application rejected: no placement rule matched",
            ),
            (app(queue="root.spaces"), "failed to find queue root.spaces for application app-1"),
            (app(queue="root..x"), "invalid queue name"),
            (app(gang_style="firm"), "unknown gang scheduling style 'firm'"),
            (app(groups=("a\nb",)), "control character"),
        ],
    )
    def test_what_stands_against_one_is_its_rejection(
        self, shim: Shim, request_: NewApplication, reason: str
    ) -> None:
        (answer,) = shim.say(applications=request_)
        assert (answer["kind"], answer["app"]) == ("rejected_application", request_.application)
        assert reason in answer["reason"]
        assert rows(shim.ledger) == []

    def test_one_that_is_there_already_is_rejected(self, shim: Shim) -> None:
        answers = shim.say(applications=[app(), app()])
        assert reasons(answers, "rejected_application") == [
            f"adding application app-1 to partition {HERE}, but application already existed"
        ]

    def test_its_tags_are_its_own_and_not_those_from_outside(self, shim: Shim) -> None:
        outside = {
            "queue": "root.batch",
            "user": "mallory",
            "node": "node-9",
            "partition": "p",
            "app": "x",
            "creator": "IDE",
            "yunikorn.apache.org/a": "b",
            "bad key": "1",
            "long": "x" * 300,
        }
        shim.say(applications=app(tags=outside))
        assert shim.application().tags == {
            "partition": HERE,
            "app": "app-1",
            "queue": "root.free",
            "user": "alice",
            "group": "staff",
            "creator": "IDE",
            "yunikorn.apache.org/a": "b",
            **{f"tag/{key}": outside[key] for key in ("queue", "user", "node", "partition", "app")},
        }

    def test_any_number_of_tags_may_come(self, shim: Shim) -> None:
        tags = {f"t{number:04}": "x" for number in range(1_000)}
        shim.say(applications=app(tags=tags), asks=ask(tags=tags))
        assert shim.row("k").state == State.USED
        assert of_kind(told(shim.ledger), "new")[0]["tags"] == tags

    def test_the_charged_group_is_the_one_with_a_limit(self, shim: Shim) -> None:
        shim.say(applications=app(queue="root.batch", user="carol", groups=()))
        assert shim.application().tags["group"] == "dev"
        answers = shim.say(asks=[ask("a", 3), ask("b", 1)])
        assert [answer["key"] for answer in of_kind(answers, "new")] == ["a"]

    def test_without_a_limit_it_is_the_first_and_who_has_none_is_charged_to_none(self, shim: Shim) -> None:
        shim.say(applications=[app(groups=("ops", "dev")), app("app-2", user="dave", groups=())])
        assert shim.application().tags["group"] == "ops"
        assert "group" not in shim.application("app-2").tags

    def test_one_that_runs_already_is_never_rejected_for_its_queue_or_user(self, shim: Shim) -> None:
        forced = {"application.create.force": "true"}
        shim.say(
            applications=[app(queue="root.gone", tags=forced), app("app-2", user="", groups=(), tags=forced)]
        )
        assert shim.application().tags["queue"] == "root.@recovery@"
        assert shim.application("app-2").tags["user"] == "nobody"

    def test_a_namespaces_limits_are_those_of_its_queue(self, shim: Shim) -> None:
        quota = '{"resources": {"memory": {"value": 5}}}'
        tags = {"namespace": "lab", "namespace.resourcequota": quota}
        answers = shim.say(applications=app(queue="", tags=tags), asks=[ask("a", 5), ask("b", 1)])
        assert shim.application().tags["queue"] == "root.spaces.lab"
        assert [answer["key"] for answer in of_kind(answers, "new")] == ["a"]
        more = {**tags, "namespace.resourcequota": '{"resources": {"memory": {"value": 6}}}'}
        answers = shim.say(applications=app("app-2", queue="", tags=more))
        assert [answer["key"] for answer in of_kind(answers, "new")] == ["b"], "and are what was said last"

    def test_an_operators_limit_goes_before_a_namespaces(self, shim: Shim) -> None:
        queue = {"partition": HERE, "queue": "root.spaces.lab"}
        shim.ledger.submit_whole(op.SetLimit(queue, {"memory": 2}))
        tags = {"namespace": "lab", "namespace.resourcequota": '{"resources": {"memory": {"value": 50}}}'}
        answers = shim.say(applications=app(queue="", tags=tags), asks=[ask("a", 3)])
        assert of_kind(answers, "new") == []
        shim.register()
        assert shim.ledger.book().limits.resolve(queue) is not None

    def test_removal_is_told_by_what_it_releases(self, shim: Shim) -> None:
        shim.say(applications=app(), asks=[ask(), ask("w", 500)])
        answers = shim.say(
            removals=[RemovedApplication(application="app-1"), RemovedApplication(application="x")]
        )
        assert [(answer["kind"], answer["message"]) for answer in answers] == [
            ("released", "Application app-1 Removed")
        ]

    def test_no_time_is_too_long(self, shim: Shim) -> None:
        shim.say(
            applications=app(timeout_ms=INT64_MAX), asks=[ask(timeout_ms=INT64_MAX), ask("l", timeout_ms=-5)]
        )
        assert shim.row("k").state == State.USED
        assert shim.row("l").deadline is None


class TestAsks:
    @pytest.mark.parametrize(
        ("request_", "reason"),
        [
            (
                ask(partition="p"),
                "Failed to find partition [rm-1]p, for application app-1 and allocation k",
            ),
            (ask(partition="[rm-2]default"), "Failed to find partition [rm-2]default"),
            (ask(application="nobody"), "failed to find application nobody"),
            (ask(resource=None), "allocation contains no resources"),
            (ask(resource={}), "allocation contains no resources"),
            (ask(resource={"memory": 0}), "allocation contains no resources"),
            (ask(resource={"memory": 5, "vcore": -1}), "allocation contains negative resources"),
            (ask(resource={"memory": 5, "": 1}), "a resource needs a name"),
            (ask(resource={"apps": 1}), "'apps' is counted by the ledger itself"),
            (ask(resource={"port/80": 1}), "'port/80' is counted by the ledger itself"),
            (ask(count=0), "invalid ask added to app app-1"),
            (ask(count=-1), "invalid ask added to app app-1"),
            (ask(count=10**9), "invalid ask added to app app-1"),
            (ask(""), "an allocation needs a key"),
            (ask("a\nb"), "control character"),
            (ask("x" * 257), "longer than 256 characters"),
            (ask(task_group="a\0b"), "control character"),
            (ask(priority="urgent"), "unknown priority class 'urgent'"),
            (ask(tags={"rm-service/nodeSelector": "in in in"}), "rm-service/nodeSelector: "),
            (ask(tags={REQUIRED_NODE: "node-9"}), "node-9"),
            (ask(tags={REQUIRED_NODE: "a\0b"}), "control character"),
            (ask(tags={REQUIRED_NODE: "x" * 300}), "longer than 256 characters"),
            (ask(tags={"foreign": "static"}), "node ID is empty for allocation k"),
        ],
    )
    def test_what_stands_against_one_is_its_rejection(self, shim: Shim, request_: Ask, reason: str) -> None:
        shim.say(applications=app())
        (answer,) = shim.say(asks=request_)
        assert (answer["kind"], answer["app"], answer["key"]) == (
            "rejected_ask",
            request_.application,
            request_.key,
        )
        assert reason in answer["reason"]
        assert len(rows(shim.ledger)) == 1

    def test_what_was_asked_for_comes_back_with_the_allocation(self, shim: Shim) -> None:
        shim.say(applications=app())
        asked = ask(
            "k",
            3,
            priority="low",
            tags={"a/b": "c", "node": "mine"},
            task_group="tg",
            placeholder=True,
            originator=True,
            preemption=Preemption(allow_self=True),
        )
        (new,) = of_kind(shim.say(asks=asked), "new")
        assert {key: new[key] for key in new if key != "id"} == {
            "kind": "new",
            "partition": HERE,
            "app": "app-1",
            "key": "k",
            "node": "node-1",
            "resource": {"memory": 3},
            "tags": {"a/b": "c", "node": "mine"},
            "priority": -100,
            "task_group": "tg",
            "placeholder": True,
            "originator": True,
            "preemption": {"allow_self": True, "allow_other": False},
            "queue": "root.free",
        }
        tags = shim.row("k").tags
        assert (tags["tag/node"], tags["allocationKey"], tags["taskGroup"]) == ("mine", "k", "tg")
        assert (tags["user"], tags["group"], tags["queue"]) == ("alice", "staff", "root.free")

    def test_a_placeholder_without_a_task_group_is_an_ask_like_others(self, shim: Shim) -> None:
        (*_, first, second) = shim.say(applications=app(), asks=ask(placeholder=True))
        assert (first["state"], second["state"]) == ("Accepted", "Running")

    def test_an_application_that_another_process_was_told_of_gives_its_tags(self, shim: Shim) -> None:
        shim.say(applications=app(queue="root.batch"))
        fresh = SchedulerService(shim.ledger, resync_seconds=60)
        Shim(shim.ledger, fresh).say(asks=ask())
        assert shim.row("k").tags["queue"] == "root.batch"
        assert shim.row("k").tags["user"] == "alice"
        fresh.close()

    def test_more_than_one_chunk_is_carried_out_in_order(self, shim: Shim) -> None:
        shim.say(nodes=node("large", 10_000), applications=app())
        asks = [ask(f"k{number}") for number in range(CHUNK * 2 + 1)]
        releases = [Release(application="app-1", key=each.key) for each in asks]
        answers = shim.say(asks=asks, releases=releases)
        assert len(of_kind(answers, "new")) == len(of_kind(answers, "released")) == len(asks)
        assert phases(told(shim.ledger)) == ["Accepted", "Running", "Completing"]

    def test_a_partition_has_one_name_in_any_case(self, shim: Shim) -> None:
        """Its limits hold however it is written."""
        shim.say(
            applications=app(queue="root.batch", partition="DEFAULT"), asks=ask("a", 13, partition="Default")
        )
        assert shim.application().tags["partition"] == HERE
        assert shim.row("a").state == State.WAITING
        shim.say(removals=RemovedApplication(application="app-1", partition="deFault"))
        assert rows(shim.ledger) == []


class TestAllocations:
    @pytest.mark.parametrize(
        ("request_", "reason"),
        [
            (running_there(partition="p"), "Failed to find partition [rm-1]p"),
            (running_there(node_id="node-9"), "failed to find node node-9"),
            (running_there(node_id="a\0b"), "control character"),
            (running_there(application="nobody"), "failed to find application nobody"),
            (running_there(resource={"memory": -1}), "allocation contains negative resources"),
            (running_there(resource={}), "allocation contains no resources"),
            (running_there(resource={"apps": 1}), "'apps' is counted by the ledger itself"),
            (running_there(""), "an allocation needs a key"),
            (running_there(priority="urgent"), "unknown priority class"),
            (running_there(node_id="node-9", tags={"foreign": "default"}), "failed to find node node-9"),
            (running_there(resource={}, tags={"foreign": "default"}), "allocation contains no resources"),
        ],
    )
    def test_what_stands_against_one_is_its_rejection(
        self, shim: Shim, request_: ExistingAllocation, reason: str
    ) -> None:
        shim.say(applications=app())
        (answer,) = shim.say(Dialect.NEWEST, allocations=request_)
        assert answer["kind"] == "rejected_allocation"
        assert (answer["app"], answer["key"]) == (request_.application, request_.key)
        assert reason in answer["reason"]

    def test_old_ones_stand_or_fall_with_their_node(self, shim: Shim) -> None:
        both = (
            running_there("a", "node-2", id="u-1"),
            running_there("b", "node-2", application="x", id="u-2"),
        )
        shim.say(applications=app())
        old = shim.say(Dialect.OLD, nodes=node("node-2", existing=both))
        assert [(answer["kind"], answer["reason"]) for answer in old] == [
            ("rejected_node", "failed to find application x")
        ]
        unreadable = (replace(both[0], resource={}), both[1])
        old = shim.say(Dialect.OLD, nodes=node("node-2", existing=unreadable))
        assert reasons(old, "rejected_node") == ["allocation contains no resources"]
        seed = shim.say(Dialect.SEED, nodes=node("node-2", existing=both))
        assert kinds(of_kind(seed, "accepted_node") + of_kind(seed, "new")) == ["accepted_node", "new"]
        assert reasons(seed, "rejected_allocation") == ["failed to find application x"]

    def test_a_foreign_one_is_updated_and_released_by_its_key(self, shim: Shim) -> None:
        foreign = {"foreign": "static"}
        for memory in (5, 7):
            report = running_there("pod", memory=memory, application="", tags=foreign)
            shim.say(Dialect.NEWEST, allocations=report)
        assert shim.row("pod").used == {"memory": 7}
        assert {"app", "user", "queue"}.isdisjoint(shim.row("pod").tags)
        shim.say(Dialect.NEWEST, releases=Release(key="pod"))
        assert rows(shim.ledger) == []

    def test_one_beyond_every_limit_is_booked_and_flagged(self, shim: Shim) -> None:
        shim.say(applications=app(queue="root.batch"), allocations=running_there(memory=50))
        assert (shim.row("k").over_limit, shim.row("k").used) == (True, {"memory": 50})

    def test_a_release_of_ids_of_every_sort(self, shim: Shim) -> None:
        ours = "01900000-0000-7000-8000-000000000001"
        shim.say(
            applications=app(),
            allocations=[
                running_there("a", id=ours),
                running_there("b", id="POD-1"),
                running_there("c", id="x" * 300),
            ],
        )
        assert {new["id"] for new in of_kind(told(shim.ledger), "new")} == {ours, "POD-1", "x" * 300}
        for each in (ours, "POD-1", "x" * 300, "unknown"):
            shim.say(releases=Release(application="app-1", id=each, termination=Termination.STOPPED_BY_RM))
        assert len(rows(shim.ledger)) == 1

    def test_an_ask_release_names_its_partition(self, shim: Shim) -> None:
        shim.say(applications=app(), asks=[ask("k", 500), ask("l", 500)])
        (answer,) = shim.say(releases=Release(application="app-1", key="k", only_ask=True))
        assert (answer["kind"], "partitionName is required" in answer["reason"]) == ("rejected_ask", True)
        assert (
            shim.say(releases=Release(application="app-1", key="k", only_ask=True, partition="default")) == []
        )
        assert [row.request["key"] for row in rows(shim.ledger) if "key" in row.request] == ["l"]


class TestNodes:
    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (
                node(attributes={"si/node-partition": "p"}),
                "failed to find partition [rm-1]p for new node node-1",
            ),
            (node(""), "a node needs an ID"),
            (node("a/b"), "holds no '/'"),
            (node("a\0b"), "control character"),
            (node("n", schedulable={"memory": -1}), "schedulableResource contains negative resources"),
            (node("n", occupied={"memory": -1}), "occupiedResource contains negative resources"),
            (node("n", schedulable={"apps": 1}), "'apps' is counted by the ledger itself"),
            (node("n", occupied={"": 1}), "a resource needs a name"),
            (node("n", action=NodeAction.UNKNOWN), "unknown action"),
            (node(), "partition [rm-1]default has an existing node node-1, node name must be unique"),
            *[
                (node("n", action=action), "failed to find node n in partition [rm-1]default")
                for action in (
                    NodeAction.UPDATE,
                    NodeAction.DRAIN_NODE,
                    NodeAction.DRAIN_TO_SCHEDULABLE,
                    NodeAction.DECOMISSION,
                )
            ],
            (node(action=NodeAction.DRAIN_TO_SCHEDULABLE), "is not draining"),
        ],
    )
    def test_what_stands_against_one_is_its_rejection(
        self, shim: Shim, change: NodeChange, reason: str
    ) -> None:
        (answer,) = shim.say(nodes=change)
        assert answer["kind"] == "rejected_node"
        assert reason in answer["reason"]

    def test_a_life(self, shim: Shim) -> None:
        shim.say(applications=app(), asks=ask("a", 20))
        drained = [node(action=NodeAction.DRAIN_NODE), node("node-2", action=NodeAction.CREATE_DRAIN)]
        shim.say(nodes=drained, asks=ask("b", 5))
        assert shim.row("b").state == State.WAITING
        shim.say(nodes=node("node-2", action=NodeAction.DRAIN_TO_SCHEDULABLE))
        assert shim.row("b").tags["node"] == "node-2"
        not_ready = node("node-2", action=NodeAction.UPDATE, memory=30, attributes={"ready": "false"})
        shim.say(nodes=not_ready, asks=ask("c", 5))
        assert shim.row("c").state == State.WAITING
        shim.say(nodes=replace(not_ready, attributes={"ready": "true"}))
        assert shim.row("c").state == State.USED
        answers = shim.say(nodes=node(action=NodeAction.DECOMISSION))
        assert [(answer["key"], answer["termination"], answer["message"]) for answer in answers] == [
            ("a", "STOPPED_BY_RM", "Node node-1 Removed")
        ]
