"""What changes in a view when units of devices are given and given back, or nodes have others."""

from typing import TYPE_CHECKING

from rm_service.domain.accounts import Account
from rm_service.domain.amounts import NOTHING, Amounts, in_devices, minus, plus
from rm_service.domain.application import Application
from rm_service.domain.device_selection import UNIT, Device
from rm_service.domain.devices import DEVICE_KEY, dimension_of, given_back_by, taken_by

if TYPE_CHECKING:
    from rm_service.domain.view import View


def follow(view: "View", before: Application | None, after: Application) -> None:
    """Take units from the node of an application, or give them back, as it begins or ends to hold them."""
    held = () if before is None else before.devices_now
    if held == after.devices_now:
        return
    view.changed_claims.add(after.id)
    for application, change, units in ((before, given_back_by, held), (after, taken_by, after.devices_now)):
        account = None if application is None else node_of(view, application.label_ids)
        if account is not None and units:
            set_devices(view, account, change(account.balance.devices or (), units))


def node_of(view: "View", label_ids: tuple[int, ...]) -> Account | None:
    """The node among these labels, with or without devices."""
    for account in view.accounts_of(label_ids):
        if account.is_capacity and "node" in account.label.tags:
            return account
    return None


def given_twice(view: "View", application: Application) -> bool:
    """Whether somebody else has, too, what an application holds of some unit, or comes back to."""
    account = node_of(view, application.label_ids)
    if account is None:
        return False
    devices = account.balance.devices or ()
    if not application.devices_now:
        devices = taken_by(devices, application.devices)
    taken = {device.name: device.taken for device in devices}
    return any(
        taken.get(each.device, {}).get(unit, 0) > UNIT
        for each in application.devices
        for unit, _ in each.units
    )


def set_devices(view: "View", account: Account, devices: tuple[Device, ...] | None) -> None:
    balance, before = account.balance, account.balance.devices
    balance.devices = devices
    view.changed_accounts.add(account.label.id)
    view.unsynced.add(account.label.id)

    def restore() -> None:
        balance.devices = before
        view.unsynced.add(account.label.id)

    view.undo_by(restore)


def sum_up(view: "View", before: Amounts | None, after: Amounts | None) -> None:
    """Add to the label of each signature what a node has more of it than before."""
    more = minus(in_devices(after or NOTHING), in_devices(before or NOTHING))
    changed = {dimension: amount for dimension, amount in more.items() if amount}
    for account in view.accounts_of(view.lookup.labels_of({}, changed)):
        dimension = dimension_of(account.label.tags[DEVICE_KEY])
        _add_room(view, account, {dimension: changed[dimension]})


def _add_room(view: "View", account: Account, more: Amounts) -> None:
    before = account.balance.total
    account.balance.total = plus(before or NOTHING, more)
    view.changed_rooms.add(account.label.id)
    view.undo_by(lambda: setattr(account.balance, "total", before))
