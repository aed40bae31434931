"""How a ticket is asked for. Kerberos itself is not here: checked is what is handed to its library."""

import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from external_providers.base import DeniedError, UnreachableError
from external_providers.yarn import kerberos
from external_providers.yarn.sessions import authentication

PARAMS = {"kerberos": {"principal": "rm@EXAMPLE.ORG", "keytab": "/etc/rm.keytab"}, "verify": True}


@dataclass
class Keytab:
    keytab: str
    principal: str


class Ticket:
    def __init__(self, **options: Any) -> None:
        self.options = options


def test_the_keytab_is_the_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spnego", SimpleNamespace(KerberosKeytab=Keytab))
    library = SimpleNamespace(HTTPKerberosAuth=Ticket, REQUIRED=1)
    monkeypatch.setitem(sys.modules, "requests_kerberos", library)
    ticket: Any = authentication(PARAMS)
    assert ticket.options["principal"] == Keytab("/etc/rm.keytab", "rm@EXAMPLE.ORG")
    assert ticket.options["mutual_authentication"] == library.REQUIRED


def test_a_library_that_is_gone_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "requests_kerberos", None)
    with pytest.raises(UnreachableError, match="Kerberos is not installed here"):
        authentication(PARAMS)


class Krb5Error(Exception):
    """As the library `krb5` has it."""

    __module__ = "krb5._exceptions"

    def __init__(self, text: str, code: int) -> None:
        self.err_code = code
        super().__init__(text)


def test_a_keytab_that_does_not_serve_is_a_denial() -> None:
    error = RuntimeError("while asking")
    error.__cause__ = Krb5Error("Key table file '/etc/rm.keytab' not found", 2)
    found = kerberos.fault(error, "http://rm1:8088")
    assert isinstance(found, DeniedError)
    assert str(found) == "http://rm1:8088: no Kerberos ticket: Key table file '/etc/rm.keytab' not found"


def test_nobody_who_gives_tickets_is_unreachable() -> None:
    found = kerberos.fault(Krb5Error("Cannot contact any KDC", kerberos.NO_KDC), "http://rm1:8088")
    assert isinstance(found, UnreachableError)


def test_another_error_is_not_about_tickets() -> None:
    assert kerberos.fault(ValueError("x"), "http://rm1:8088") is None
