"""No secret gets into a log."""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from rm_service.facades.si.proto import si_pb2 as si
from rm_service.facades.si.proto import si_v0_pb2 as si_v0
from rm_service.facades.si.redaction import redacted

# Characters that nothing else in a message has.
secrets = st.text("äöüßé☃", min_size=1).map(lambda text: f"Ω{text}Ω")


def envelope(listed: list[Message], named: dict[str, Message]) -> Message:
    """A message that holds registrations in a list and in a map, of a type made here and now."""
    optional, repeated = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.LABEL_REPEATED
    text, message = FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_MESSAGE
    held = f".{si.RegisterResourceManagerRequest.DESCRIPTOR.full_name}"
    entry = ".test.Envelope.NamedEntry"

    def field(name: str, number: int, **options: Any) -> FieldDescriptorProto:
        return FieldDescriptorProto(name=name, number=number, **options)

    file = descriptor_pb2.FileDescriptorProto(
        name="envelope.proto", package="test", syntax="proto3", dependency=[si.DESCRIPTOR.name]
    )
    made = file.message_type.add(name="Envelope")
    made.field.append(field("listed", 1, label=repeated, type=message, type_name=held))
    made.field.append(field("named", 2, label=repeated, type=message, type_name=entry))
    entries = made.nested_type.add(name="NamedEntry")
    entries.options.map_entry = True
    entries.field.append(field("key", 1, label=optional, type=text))
    entries.field.append(field("value", 2, label=optional, type=message, type_name=held))
    pool = descriptor_pool.DescriptorPool()
    for part in (descriptor_pb2.DESCRIPTOR, si.DESCRIPTOR):
        pool.AddSerializedFile(part.serialized_pb)
    pool.Add(file)
    holder: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("test.Envelope"))()
    for each in listed:
        holder.listed.add().ParseFromString(each.SerializeToString())
    for name, each in named.items():
        holder.named[name].ParseFromString(each.SerializeToString())
    filled: Message = holder
    return filled


def registration(config: str, extra: dict[str, str]) -> si.RegisterResourceManagerRequest:
    return si.RegisterResourceManagerRequest(rmID="rm-1", config=config, extraConfig=extra)


@given(config=secrets, extra=st.dictionaries(secrets, secrets, max_size=3))
def test_no_text_of_a_secret_field_is_shown(config: str, extra: dict[str, str]) -> None:
    shown = redacted(registration(config, extra))
    assert "rm-1" in shown
    assert "config: ***" in shown
    for secret in (config, *extra, *extra.values()):
        assert secret not in shown
        assert secret.encode("unicode_escape").decode() not in shown


@given(listed=secrets, named=secrets)
def test_nor_at_any_depth(listed: str, named: str) -> None:
    shown = redacted(
        envelope([registration(listed, {"k": listed})], {"name": registration(named, {named: "v"})})
    )
    assert shown.count("rm-1") == shown.count("config: ***") == shown.count("extraConfig: ***") == 2
    for secret in (listed, named):
        assert secret not in shown
        assert secret.encode("unicode_escape").decode() not in shown


def test_configurations_of_the_oldest_generation_are_secret_too() -> None:
    assert redacted(si_v0.UpdateConfigurationRequest(configs="s3cret")) == (
        "UpdateConfigurationRequest{configs: ***}"
    )
    answer = si_v0.UpdateConfigurationResponse(success=True, oldConfig="s3cret", reason="why")
    assert redacted(answer) == 'UpdateConfigurationResponse{success: true, oldConfig: ***, reason: "why"}'


def test_a_field_that_is_not_known_here_is_not_shown() -> None:
    message = si_v0.RegisterResourceManagerRequest.FromString(
        registration("s3cret", {"k": "s3cret"}).SerializeToString()
    )
    assert redacted(message) == 'RegisterResourceManagerRequest{rmID: "rm-1"}'


def test_everything_else_is_shown_on_one_line() -> None:
    message = si.AllocationRequest(
        rmID="a\nb\x1b[31m",
        asks=[si.AllocationAsk(allocationKey="pod", priority=3, tags={"t": "1"})],
        releases={"allocationsToRelease": [{"terminationType": "TIMEOUT"}, {"terminationType": 77}]},
    )
    assert redacted(message) == (
        'AllocationRequest{asks: [AllocationAsk{allocationKey: "pod", priority: 3, tags: {"t": "1"}}], '
        "releases: AllocationReleasesRequest{allocationsToRelease: "
        "[AllocationRelease{terminationType: TIMEOUT}, AllocationRelease{terminationType: 77}]}, "
        'rmID: "a\\nb\\u001b[31m"}'
    )
