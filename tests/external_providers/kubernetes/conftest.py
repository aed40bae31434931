"""Fixtures of the Kubernetes provider's tests."""

import pytest

from tests.external_providers.kubernetes.asking import Keys
from tests.kubernetes.certificates import Authority


@pytest.fixture(scope="session")
def keys() -> Keys:
    authority = Authority()
    return Keys(authority, authority.server(), authority.client("rm"))
