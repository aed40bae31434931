"""The messages of one dialect, compiled from its proto into a descriptor pool of their own.

All three protos are package si.v1 and contradict each other, so none of them may enter the global pool, and
nothing here is shared with the service: what both agree on is only what is written on the wire.
"""

import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

PROTOS = Path(__file__).parent / "protos"
PACKAGE = "si.v1"
ROW = "rmRow"
ROW_NUMBER = 1000
"""The service's own field in every response: the number of the last row of the outbox that it holds."""

Json = dict[str, Any]


class Wire:
    """Translates between JSON bodies, in the proto's own field names, and bytes."""

    def __init__(self, files: descriptor_pb2.FileDescriptorSet) -> None:
        self._pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            self._pool.Add(file)

    def encode(self, name: str, body: Json) -> bytes:
        """The message `name` with this content; enums by name or by number, known or not."""
        return ParseDict(body, self._class(name)()).SerializeToString()

    def decode(self, name: str, data: bytes) -> Json:
        """What was received; the row's number, which no published proto knows, under its JSON name."""
        message = self._class(name).FromString(data)
        body: Json = MessageToDict(message, preserving_proto_field_name=True)
        unknown = UnknownFieldSet(message)
        for field in (unknown[n] for n in range(len(unknown))):
            if field.field_number == ROW_NUMBER:
                body[ROW] = field.data
        return body

    def _class(self, name: str) -> type[Message]:
        descriptor = self._pool.FindMessageTypeByName(f"{PACKAGE}.{name}")
        return message_factory.GetMessageClass(descriptor)


@cache
def wire(dialect: str) -> Wire:
    """The messages of `protos/DIALECT.proto`."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "descriptors"
        compiler = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTOS}"]
        subprocess.run([*compiler, f"--descriptor_set_out={target}", f"{dialect}.proto"], check=True)
        return Wire(descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes()))
