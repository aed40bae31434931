from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.conversions import Conversions
from rm_service.domain.label_rules import Kind, LabelRules, RuleError
from rm_service.domain.tags import TagError, canonical_key

CONFIG = yaml.safe_load((Path(__file__).parents[2] / "config" / "default.yaml").read_text(encoding="utf-8"))
DEFAULT = LabelRules.from_document(CONFIG["label_rules"])


def rule(*keys: str, **fields: object) -> dict[str, object]:
    """A declared rule: a quota unless `kind` says otherwise, named after kind and keys."""
    name = f"{fields.get('kind', 'quota')} of {'+'.join(keys)}"
    return {"name": name, "keys": list(keys), "kind": "quota", **fields}


def rules(*documents: object) -> LabelRules:
    return LabelRules.from_document(list(documents))


def labels(label_rules: LabelRules, **tags: str) -> list[str]:
    return [label.key for label in label_rules.labels_for(tags)]


class TestLabels:
    def test_an_application_is_charged_where_it_carries_every_key_of_a_rule(self) -> None:
        label_rules = rules(rule("user"), rule("user", "creator"))
        assert labels(label_rules, user="alice") == ["user=alice"]
        assert labels(label_rules, user="alice", creator="IDE") == ["user=alice", "creator=IDE,user=alice"]
        assert labels(label_rules, creator="IDE") == []

    def test_a_tag_that_no_rule_names_is_charged_nowhere(self) -> None:
        assert labels(rules(rule("user")), user="alice", app="a1", job="7") == ["user=alice"]

    def test_a_label_knows_its_tags_and_its_rule(self) -> None:
        label_rules = rules(rule("user", "creator"))
        (label,) = label_rules.labels_for({"user": "alice", "creator": "IDE", "app": "a"})
        assert label.tags == {"user": "alice", "creator": "IDE"}
        assert label.rule is label_rules.rule_for(frozenset({"user", "creator"}))

    def test_a_hierarchical_tag_charges_every_level_from_the_root(self) -> None:
        label_rules = rules(rule("queue", hierarchical="."))
        assert labels(label_rules, queue="root.a.b") == ["queue=root", "queue=root.a", "queue=root.a.b"]
        assert labels(label_rules, queue="root") == ["queue=root"]

    def test_a_hierarchical_key_expands_in_every_rule_that_has_it(self) -> None:
        label_rules = rules(rule("user", "queue"), rule("queue", hierarchical={"queue": "."}))
        assert labels(label_rules, user="a", queue="r.q") == [
            "queue=r,user=a",
            "queue=r.q,user=a",
            "queue=r",
            "queue=r.q",
        ]

    def test_two_hierarchical_keys_make_every_pair_of_levels(self) -> None:
        label_rules = rules(rule("queue", "team", hierarchical={"queue": ".", "team": "/"}))
        assert labels(label_rules, queue="r.q", team="x/y") == [
            "queue=r,team=x",
            "queue=r,team=x/y",
            "queue=r.q,team=x",
            "queue=r.q,team=x/y",
        ]

    @pytest.mark.parametrize("queue", ["", ".", "root.", ".root", "root..a", ".".join("a" * 33)])
    def test_an_empty_level_or_too_many_are_an_error_that_names_the_tag(self, queue: str) -> None:
        with pytest.raises(TagError) as caught:
            DEFAULT.labels_for({"queue": queue})
        assert caught.value.key == "queue"

    def test_the_number_of_labels_of_one_application_is_bounded(self) -> None:
        separators = {"a": ".", "b": ".", "c": "."}
        ten_levels = ".".join("x" * 10)
        with pytest.raises(TagError, match="1000 labels"):
            labels(
                rules(rule(*separators, hierarchical=separators)), a=ten_levels, b=ten_levels, c=ten_levels
            )
        many = rules(*[rule("queue", f"k{at}", hierarchical={"queue": "."}) for at in range(17)])
        with pytest.raises(TagError, match="544 labels"):
            labels(many, queue=".".join("x" * 32), **{f"k{at}": "v" for at in range(17)})

    def test_unless_switches_a_rule_off(self) -> None:
        label_rules = rules(rule("node", unless=["partition"]), rule("partition", "node"))
        assert labels(label_rules, node="n1") == ["node=n1"]
        assert labels(label_rules, node="n1", partition="p") == ["node=n1,partition=p"]

    @given(st.data())
    def test_labels_do_not_depend_on_the_order_of_the_tags_and_come_once_each(
        self, data: st.DataObject
    ) -> None:
        keys = ["user", "creator", "engineType", "node", "partition", "queue", "group", "tenant", "app"]
        value = st.sampled_from(["x", "y", "root.a", "root.a.b"])
        tags = data.draw(st.dictionaries(st.sampled_from(keys), value))
        shuffled = dict(data.draw(st.permutations(list(tags.items()))))
        charged = DEFAULT.labels_for(tags)
        assert LabelRules.from_document(CONFIG["label_rules"]).labels_for(shuffled) == charged
        assert len({label.key for label in charged}) == len(charged)
        for label in charged:
            assert label.key == canonical_key(label.tags)
            assert label.tags.keys() == label.rule.keys <= tags.keys()


class TestMerging:
    def test_rules_with_the_same_keys_are_one_label_of_the_strongest_kind(self) -> None:
        label_rules = rules(rule("n", kind="rollup"), rule("n", kind="capacity"), rule("n", kind="quota"))
        (merged,) = label_rules.rules
        assert merged.kind is Kind.CAPACITY
        assert merged.name == "capacity of n"
        assert labels(label_rules, n="1") == ["n=1"]

    def test_their_dimensions_are_united(self) -> None:
        first = rule("n", dimensions=["yarn.*", "!yarn.vcore"])
        second = rule("n", kind="rollup", dimensions=["yarn.vcore", "memory"])
        (merged,) = rules(first, second).rules
        charged = [merged.charges(name) for name in ("yarn.memory", "yarn.vcore", "memory", "vcore")]
        assert charged == [True, True, True, False]

    def test_a_rule_of_all_dimensions_makes_it_all(self) -> None:
        (merged,) = rules(rule("n", dimensions=["memory"]), rule("n", kind="rollup")).rules
        assert merged.charges("anything")

    def test_the_external_provider_is_kept(self) -> None:
        yarn = rule("q", kind="capacity", external="yarn")
        (merged,) = rules(rule("q", kind="rollup"), yarn).rules
        assert merged.external == "yarn"


class TestDimensions:
    @pytest.mark.parametrize(
        ("patterns", "charged", "free"),
        [
            (None, ["memory", "yarn.memory", "x"], []),
            (["*"], ["memory", "yarn.memory"], []),
            (["memory"], ["memory"], ["memory2", "yarn.memory", "mem"]),
            (["yarn.*"], ["yarn.memory", "yarn.a.b"], ["yarn", "memory"]),
            (["!yarn.*"], ["memory", "yarn"], ["yarn.memory"]),
            (["*", "!yarn.*", "!k8s.*"], ["memory"], ["yarn.memory", "k8s.vcore"]),
            (["!memory", "memory"], [], ["memory", "vcore"]),
        ],
    )
    def test_patterns_choose_dimensions(
        self, patterns: list[str] | None, charged: list[str], free: list[str]
    ) -> None:
        fields = {} if patterns is None else {"dimensions": patterns}
        (only,) = rules(rule("n", **fields)).rules
        assert [name for name in charged + free if only.charges(name)] == charged

    def test_charge_takes_the_part_that_is_charged(self) -> None:
        (only,) = rules(rule("n", dimensions=["!yarn.*"])).rules
        assert only.charge({"memory": 1, "yarn.memory": 2, "vcore": 0}) == {"memory": 1, "vcore": 0}

    @pytest.mark.parametrize("fields", [{}, {"dimensions": ["!yarn.*"]}])
    def test_charge_gives_the_same_object_back_when_that_is_all(self, fields: dict[str, object]) -> None:
        (only,) = rules(rule("n", **fields)).rules
        amounts = {"memory": 1, "vcore": 2}
        assert only.charge(amounts) is amounts

    def test_any_number_of_invented_dimensions_is_judged_right(self) -> None:
        (only,) = rules(rule("n", dimensions=["a*"])).rules
        names = [f"{letter}{number}" for number in range(3000) for letter in "ab"]
        assert list(only.charge(dict.fromkeys(names, 1))) == names[::2]
        assert len(only._verdicts) <= 1024  # what is remembered of them is bounded


class TestLimitsOnNewKeys:
    def test_a_limit_on_keys_that_no_rule_names_brings_in_a_quota(self) -> None:
        more = rules(rule("user")).with_quota(frozenset({"app", "user"}))
        assert labels(more, user="a", app="x") == ["user=a", "app=x,user=a"]
        found = more.rule_for(frozenset({"user", "app"}))
        assert found is not None
        assert (found.name, found.kind) == ("limit:app+user", Kind.QUOTA)
        assert found.charges("anything")

    @pytest.mark.parametrize("kind", ["quota", "capacity"])
    def test_nothing_changes_where_a_rule_judges_already(self, kind: str) -> None:
        label_rules = rules(rule("n", kind=kind))
        assert label_rules.with_quota(frozenset({"n"})) is label_rules

    def test_a_rollup_becomes_a_quota_and_stays_what_it_counts(self) -> None:
        before = rules(rule("n", kind="rollup", dimensions=["memory"], unless=["partition"]))
        after = before.with_quota(frozenset({"n"}))
        (merged,) = after.rules
        assert merged.kind is Kind.QUOTA
        assert (merged.dimensions, merged.unless) == (before.rules[0].dimensions, before.rules[0].unless)
        assert before.rules[0].kind is Kind.ROLLUP

    def test_hierarchical_keys_are_hierarchical_there_too(self) -> None:
        more = DEFAULT.with_quota(frozenset({"app", "queue"}))
        assert "app=x,queue=root" in labels(more, app="x", queue="root.a")

    def test_a_set_of_keys_that_is_too_large_is_an_error(self) -> None:
        with pytest.raises(RuleError):
            DEFAULT.with_quota(frozenset(f"k{number}" for number in range(9)))


class TestDocument:
    @pytest.mark.parametrize(
        "label_rules",
        [
            DEFAULT,
            DEFAULT.with_quota(frozenset({"app", "user"})).with_quota(frozenset({"creator"})),
            rules(rule("a", "b", hierarchical={"b": "/"}, unless=["c", "d"], dimensions=["x*", "!xy"])),
        ],
    )
    def test_written_rules_are_read_back(self, label_rules: LabelRules) -> None:
        again = LabelRules.from_document(label_rules.to_document())
        assert again == label_rules
        assert again.rules == label_rules.rules
        assert again.separators == label_rules.separators
        assert again.to_document() == label_rules.to_document()

    @pytest.mark.parametrize(
        ("document", "path"),
        [
            ({}, ""),
            ([None], "[0]"),
            ([rule("a"), "b"], "[1]"),
            ([rule("a", colour="red")], "[0].colour"),
            ([{"keys": ["a"], "kind": "quota"}], "[0].name"),
            ([rule("a", name="limit:b")], "[0].name"),
            ([rule("a", name="x\ny")], "[0].name"),
            ([rule("a"), rule("b", name=rule("a")["name"])], "[1].name"),
            ([rule()], "[0].keys"),
            ([rule("a", keys="a")], "[0].keys"),
            ([rule("a", "a")], "[0].keys"),
            ([rule("a", "b c")], "[0].keys[1]"),
            ([rule(*"abcdefghi")], "[0].keys"),
            ([rule("a", kind="Quota")], "[0].kind"),
            ([{"name": "a", "keys": ["a"]}], "[0].kind"),
            ([rule("a", dimensions=[])], "[0].dimensions"),
            ([rule("a", dimensions=["x*y"])], "[0].dimensions[0]"),
            ([rule("a", dimensions=["x", "!"])], "[0].dimensions[1]"),
            ([rule("a", dimensions=["!!x"])], "[0].dimensions[0]"),
            ([rule("a", "b", hierarchical=".")], "[0].hierarchical"),
            ([rule("a", hierarchical={"b": "."})], "[0].hierarchical.b"),
            ([rule("a", hierarchical="..")], "[0].hierarchical.a"),
            ([rule("a", hierarchical="x")], "[0].hierarchical.a"),
            ([rule("a", hierarchical="."), rule("a", "b", hierarchical={"a": "/"})], "[1].hierarchical"),
            ([rule("a", unless=["a"])], "[0].unless"),
            ([rule("a"), rule("a", kind="rollup", unless=["b"])], "[1].unless"),
            ([rule("a", external="yarn")], "[0].external"),
            (
                [
                    rule("a", kind="capacity", external="yarn"),
                    rule("a", kind="capacity", external="kubernetes", name="b"),
                ],
                "[1].external",
            ),
            ([rule("a")] * 257, ""),
        ],
    )
    def test_a_mistake_is_named(self, document: object, path: str) -> None:
        with pytest.raises(RuleError) as caught:
            LabelRules.from_document(document)
        assert caught.value.path == f"label_rules{path}"


class TestRollup:
    @pytest.mark.parametrize(
        ("keys", "names"),
        [
            (["user"], ["user"]),
            (["creator"], ["creator"]),
            (["partition", "queue"], ["partition-queue"]),
            (["queue"], ["queue", "partition-queue"]),
            (["node"], []),
            (["app"], []),
            (["user", "creator"], []),
        ],
    )
    def test_by_default(self, keys: list[str], names: list[str]) -> None:
        assert [found.name for found in DEFAULT.rollup(frozenset(keys))] == names

    @pytest.mark.parametrize(
        "documents",
        [
            [rule("q", unless=["p"])],
            [rule("q", unless=["p"]), rule("p", "q", dimensions=["memory"])],
            [rule("q", unless=["p"]), rule("p", "q", unless=["r"])],
            [rule("q", unless=["p"]), rule("p", "q", hierarchical={"p": "."})],
            [rule("q", unless=["p", "r"]), rule("p", "q"), rule("q", "r"), rule("p", "q", "r")],
            [rule("q", dimensions=["memory"])],
        ],
    )
    def test_no_balances_are_offered_that_would_miss_or_repeat_an_application(
        self, documents: list[object]
    ) -> None:
        assert rules(*documents).rollup(frozenset({"q"})) == ()

    @given(st.lists(st.dictionaries(st.sampled_from(["q", "p", "user"]), st.sampled_from(["x", "y", "x.y"]))))
    def test_each_application_is_in_the_balances_once_for_each_level(
        self, applications: list[dict[str, str]]
    ) -> None:
        label_rules = rules(rule("q", hierarchical=".", unless=["p"]), rule("p", "q"))
        chosen = label_rules.rollup(frozenset({"q"}))
        for tags in applications:
            held = [label.tags["q"] for label in label_rules.labels_for(tags) if label.rule in chosen]
            assert held == list(label_rules.levels("q", tags["q"]) if "q" in tags else ())


class TestDefaults:
    def test_an_engine_of_linkis(self) -> None:
        tags = {"userCreator": "svc-etl-IDE", "engineType": "spark-3.3", "node": "host1:9101", "tenant": "t"}
        tags |= {"yarnCluster": "c", "yarnQueue": "q"}
        charged = DEFAULT.labels_for(Conversions.from_document(CONFIG["conversions"]).apply(tags))
        assert [(label.key, str(label.rule.kind)) for label in charged] == [
            ("node=host1:9101", "capacity"),
            ("yarnCluster=c,yarnQueue=q", "capacity"),
            ("user=svc-etl", "quota"),
            ("creator=IDE,engineType=spark-3.3,user=svc-etl", "quota"),
            ("tenant=t", "quota"),
            ("creator=IDE", "rollup"),
            ("engineType=spark-3.3", "rollup"),
        ]

    def test_work_of_a_partition_is_kept_apart_from_names_outside_it(self) -> None:
        charged = labels(DEFAULT, partition="p", app="a", queue="root.a", user="u", group="g", node="node-1")
        assert charged == [
            "node=node-1,partition=p",
            "user=u",
            "partition=p,queue=root",
            "partition=p,queue=root.a",
            "partition=p,queue=root,user=u",
            "partition=p,queue=root.a,user=u",
            "group=g,partition=p,queue=root",
            "group=g,partition=p,queue=root.a",
        ]

    @pytest.mark.parametrize("keys", [{"node"}, {"partition", "node"}])
    def test_a_node_holds_the_driver_and_its_yarn_queue_the_rest(self, keys: set[str]) -> None:
        node = DEFAULT.rule_for(frozenset(keys))
        yarn = DEFAULT.rule_for(frozenset({"yarnCluster", "yarnQueue"}))
        assert node is not None
        assert yarn is not None
        amounts = {"memory": 1, "yarn.memory": 2, "k8s.memory": 4, "gpu": 8}
        assert node.charge(amounts) == {"memory": 1, "gpu": 8}
        assert yarn.charge(amounts) == {"yarn.memory": 2}
        assert yarn.external == "yarn"


class TestCounting:
    QUEUE = rule("q", kind="capacity", external="yarn", dimensions=["yarn.*"], counts="yarn.apps")

    def test_an_application_counts_as_one_where_the_rule_says_so(self) -> None:
        assert rules(self.QUEUE).counted([{"q": "a"}], {"yarn.memory": 5}) == {
            "yarn.memory": 5,
            "yarn.apps": 1,
        }

    def test_one_that_says_how_many_it_is_counts_as_so_many(self) -> None:
        asked = {"yarn.apps": 3}
        assert rules(self.QUEUE).counted([{"q": "a"}], asked) is asked

    def test_one_that_is_not_charged_is_not_counted(self) -> None:
        asked = {"memory": 3}
        assert rules(self.QUEUE, rule("n")).counted([{"n": "a"}], asked) is asked

    def test_it_is_counted_wherever_it_may_go(self) -> None:
        assert rules(self.QUEUE, rule("n")).counted([{"n": "a"}, {"q": "b"}], {}) == {"yarn.apps": 1}

    def test_it_is_written_as_it_was_read(self) -> None:
        assert rules(self.QUEUE).to_document()[0]["counts"] == "yarn.apps"

    @pytest.mark.parametrize("counts", ["memory", "", 1, "a b"])
    def test_only_a_dimension_that_is_charged_can_count(self, counts: object) -> None:
        with pytest.raises(RuleError, match=r"counts"):
            rules({**self.QUEUE, "counts": counts})

    def test_rules_with_the_same_keys_agree(self) -> None:
        with pytest.raises(RuleError, match=r"\[1\]\.counts"):
            rules(self.QUEUE, rule("q", kind="rollup"))
