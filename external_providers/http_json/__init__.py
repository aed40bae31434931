"""The provider of any JSON endpoint: its configuration says where places, applications and amounts stand.

docs/external-providers.md describes it.
"""

from external_providers.http_json.provider import HttpJsonProvider

__all__ = ["HttpJsonProvider"]
