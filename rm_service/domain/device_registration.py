"""Registering a node's devices: new ones, others under a known name, and those that are gone."""

from collections.abc import Sequence
from dataclasses import replace

from rm_service.domain.accounts import Account
from rm_service.domain.amounts import negative
from rm_service.domain.application import HOLDING, Application
from rm_service.domain.device_changes import node_of, set_devices
from rm_service.domain.device_selection import Device
from rm_service.domain.devices import Signatures, relabelled
from rm_service.domain.events import Kind
from rm_service.domain.view import View


def register_devices(
    view: View, account: Account, devices: tuple[Device, ...], signatures: Signatures
) -> None:
    """A node has these devices now; what is held stays held, under the signatures that they have now."""
    before = account.balance.devices or ()
    view.lookup.learn(signatures)
    view.signatures.update(signatures)
    if devices == before:
        return
    set_devices(view, account, devices or None)
    held = {device.name: device.signature for device in before if device.taken}
    changed = {each.name for each in devices if held.get(each.name, each.signature) != each.signature}
    if not changed:
        return
    for application_id in view.lookup.tenants_of(account.label.id):
        application = view.applications[application_id]
        if application.state in HOLDING and any(each.device in changed for each in application.devices):
            _book_anew(view, application, devices)


def under_present_signatures(view: View, application: Application) -> Application:
    """An application that comes back to devices which may have other attributes by now.

    Where no node is charged any more there is nothing whose units it could hold.
    """
    node = node_of(view, application.label_ids)
    held = () if node is None else relabelled(application.devices, node.balance.devices or ())
    anew = replace(application, devices=held)
    if anew.devices != application.devices:
        anew.label_ids = view.lookup.labels_of(anew.tags, anew.device_amounts)
    return anew


def _book_anew(view: View, application: Application, devices: Sequence[Device]) -> None:
    """Take what an application holds from its devices' old signatures, and book it under the new ones."""
    anew = replace(application, devices=relabelled(application.devices, devices))
    anew.label_ids = view.lookup.labels_of(application.tags, anew.device_amounts)
    for each, sign in ((application, -1), (anew, 1)):
        locked, used = each.locked_now, each.used_now
        view.post(
            Kind.APPLICATION_ADJUSTED,
            each.id,
            label_ids=each.label_ids,
            locked=locked if sign > 0 else negative(locked),
            used=used if sign > 0 else negative(used),
            holders=sign,
            tags=each.tags,
            detail={"reason": "a device that it holds has other attributes"},
        )
    view.put_application(anew)
