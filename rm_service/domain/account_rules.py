"""Which rule says what is charged to a label: a declared one, that of a signature of devices, or none."""

from rm_service.domain.accounts import only_queues
from rm_service.domain.devices import DEVICE_KEY, device_rule
from rm_service.domain.label_rules import LabelRule, LabelRules
from rm_service.domain.tags import Tags


def label_rule(rules: LabelRules, tags: Tags) -> LabelRule | None:
    """What is charged to the label of these tags: nothing, where it only holds a queue."""
    if only_queues(tags):
        return None
    signature = tags.get(DEVICE_KEY)
    return rules.rule_for(frozenset(tags)) if signature is None else device_rule(signature)
