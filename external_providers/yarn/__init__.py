"""YARN: the queues of a ResourceManager, read over its REST interface."""

from external_providers.yarn.provider import YarnProvider

__all__ = ["YarnProvider"]
