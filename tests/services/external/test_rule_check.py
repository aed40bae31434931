"""A rule that charges what its managers do not count is told of at the start."""

from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml

from rm_service.domain.label_rules import LabelRules
from rm_service.services.external.plugins import Plugins
from rm_service.services.external.rule_check import uncounted, warn_of_uncounted

PLUGINS = Plugins.discover().by_type
DEFAULT = yaml.safe_load(Path("config/default.yaml").read_text(encoding="utf-8"))["label_rules"]


def rules(type_: str, *dimensions: str) -> LabelRules:
    rule: dict[str, Any] = {"name": "r", "keys": ["c", "q"], "kind": "capacity", "external": type_}
    return LabelRules.from_document([rule | ({"dimensions": list(dimensions)} if dimensions else {})])


def test_the_default_rules_charge_what_is_counted() -> None:
    assert uncounted(LabelRules.from_document(DEFAULT), PLUGINS) == {}


@pytest.mark.parametrize(
    ("type_", "dimensions", "found"),
    [
        ("yarn", ["yarn.*"], ["yarn.instances"]),
        ("yarn", ["yarn.memory", "yarn.gpu"], ["yarn.gpu"]),
        ("yarn", ["yarn.*", "!yarn.instances"], None),
        ("kubernetes", ["yarn.memory"], ["yarn.memory"]),
        ("static", [], None),
        ("nobodys", ["x"], None),
    ],
)
def test_what_is_asked_for_and_not_counted_is_found(
    type_: str, dimensions: list[str], found: list[str] | None
) -> None:
    assert uncounted(rules(type_, *dimensions), PLUGINS).get("r") == found


def test_a_rule_of_all_dimensions_charges_the_driver_too() -> None:
    assert {"memory", "vcore"} <= set(uncounted(rules("yarn"), PLUGINS)["r"])


def test_the_log_names_the_rule_and_the_dimensions() -> None:
    with structlog.testing.capture_logs() as logs:
        warn_of_uncounted(rules("yarn", "yarn.*"), PLUGINS)
    assert logs == [
        {
            "event": "label_rule_charges_what_nobody_counts",
            "log_level": "warning",
            "rule": "r",
            "dimensions": ["yarn.instances"],
        }
    ]
