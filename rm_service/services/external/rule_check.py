"""Whether label rules charge external places with what their managers do not count."""

from collections.abc import Iterable, Mapping

import structlog

from external_providers.base import ExternalResourceProvider
from rm_service.domain.label_rules import LabelRule, LabelRules
from rm_service.domain.resource_types import KubernetesResource, LoadInstanceResource, YarnResource

USUAL = frozenset().union(
    *[each.fields_by_dimension for each in (LoadInstanceResource, YarnResource, KubernetesResource)]
)
"""What applications ask for in the shapes of Linkis, besides what a rule names itself."""

_log = structlog.get_logger(__name__)


def uncounted(rules: LabelRules, plugins: Mapping[str, ExternalResourceProvider]) -> dict[str, list[str]]:
    """By the names of rules what they charge and no provider of their type counts: who asks
    for one of these is refused.
    """
    found = {}
    for rule in rules.external:
        plugin = plugins.get(rule.external or "")
        counted = plugin.identify().dimensions if plugin is not None else frozenset()
        if counted:
            found[rule.name] = sorted({each for each in _charged(rule) if each not in counted})
    return {name: dimensions for name, dimensions in found.items() if dimensions}


def warn_of_uncounted(rules: LabelRules, plugins: Mapping[str, ExternalResourceProvider]) -> None:
    """Tell of each such rule in the log."""
    for name, dimensions in uncounted(rules, plugins).items():
        _log.warning("label_rule_charges_what_nobody_counts", rule=name, dimensions=dimensions)


def _charged(rule: LabelRule) -> Iterable[str]:
    named = {name for patterns in rule.dimensions for name in patterns if not name.endswith("*")}
    return [each for each in {*USUAL, *named} if not each.startswith("!") and rule.charges(each)]
