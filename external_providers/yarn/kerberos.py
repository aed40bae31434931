"""Tickets instead of passwords: SPNEGO by `requests-kerberos`, which not every installation has."""

import importlib
import importlib.util
from collections.abc import Iterator, Mapping

from requests.auth import AuthBase

from external_providers.base import DeniedError, ProviderError, UnreachableError
from external_providers.yarn.words import plain

MODULE = "requests_kerberos"
HOW_TO_INSTALL = "pip install 'rm-service[kerberos]'"
LIBRARIES = frozenset({MODULE, "spnego", "krb5", "gssapi"})
NO_KDC = -1765328228
"""KRB5_KDC_UNREACH: nobody who gives tickets answers."""


def installed() -> bool:
    return importlib.util.find_spec(MODULE) is not None


def ticket(config: Mapping[str, str]) -> AuthBase:
    """What a session authenticates with. Raises UnreachableError if the library is not there."""
    try:
        library = importlib.import_module(MODULE)
        spnego = importlib.import_module("spnego")
    except ImportError as error:
        raise UnreachableError(f"Kerberos is not installed here: {HOW_TO_INSTALL}") from error
    # With the keytab itself as the credential nothing depends on a ticket cache or on the environment.
    credential = spnego.KerberosKeytab(config["keytab"], config["principal"])
    made: AuthBase = library.HTTPKerberosAuth(
        mutual_authentication=library.REQUIRED, principal=credential, force_preemptive=False
    )
    return made


def fault(error: BaseException, address: str) -> ProviderError | None:
    """What is wrong with the ticket, if this is an error of the libraries that get one."""
    for one in _chain(error):
        if type(one).__module__.partition(".")[0] not in LIBRARIES:
            continue
        kind = UnreachableError if getattr(one, "err_code", None) == NO_KDC else DeniedError
        return kind(f"{address}: no Kerberos ticket: {plain(one)}")
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes, innermost first: that is where the reason is."""
    chain: list[BaseException] = []
    found: BaseException | None = error
    while found is not None and found not in chain:
        chain.append(found)
        found = found.__cause__ or found.__context__
    yield from reversed(chain)
