"""Short forms for reading a queue configuration, and for being refused one."""

from typing import Any

import pytest

from rm_service.domain.queue_config import PartitionConfig, QueueConfigError
from rm_service.domain.queue_documents import read_configuration
from tests.domain.queue_strategies import Document


def partition_of(*queues: Document, **fields: Any) -> PartitionConfig:
    """The one partition with these top queues."""
    return read_configuration({"partitions": [{"queues": list(queues), **fields}]}).partitions[0]


def refused(document: object) -> QueueConfigError:
    with pytest.raises(QueueConfigError) as caught:
        read_configuration(document)
    return caught.value


def refused_place(*queues: Document, **fields: Any) -> str:
    return refused({"partitions": [{"queues": list(queues), **fields}]}).path
