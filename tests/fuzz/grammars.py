"""What every input of the fuzzer goes through: each strict grammar reads it or refuses it with its own error.

Whatever else happens - another error, something read that does not read back - is a finding.
"""

import json
from collections.abc import Callable

from rm_service.domain.class_expressions import Outcome
from rm_service.domain.device_attributes import (
    Attributes,
    AttributeValueError,
    read_attributes,
    signature_of,
    write_attributes,
)
from rm_service.domain.exact_quantities import read_exact_quantity
from rm_service.domain.measures import MeasureError, read_measure
from rm_service.domain.quantities import QuantityError
from rm_service.domain.resource_classes import (
    ResourceClassError,
    ResourceClassSpec,
    check_class_name,
    explain,
    match,
    read_spec,
    write_spec,
)
from rm_service.domain.selectors import SelectorError, parse_selector
from rm_service.domain.versions import VersionError, read_version

TEXTS: tuple[tuple[Callable[[str], object], type[Exception]], ...] = (
    (read_exact_quantity, QuantityError),
    (read_measure, MeasureError),
    (read_version, VersionError),
    (parse_selector, SelectorError),
    (check_class_name, ResourceClassError),
)
DEVICE = {"Kind": "nvidia-gpu", "memory": "30G", "speed": "40GBPS", "driver": "535.104.05", "ok": True}


def one_input(data: bytes) -> None:
    """Read the input as a text of each grammar, as attributes of a device and as a class."""
    text = _text(data)
    for read, refusal in TEXTS:
        read_text(read, refusal, text)
    device = read_device({"Kind": text, "memory": "30G"}) or read_device(DEVICE) or {}
    read_class(class_of_lines(text), device)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return
    read_class(document, device)
    read_device(document)


def read_text(read: Callable[[str], object], refusal: type[Exception], text: str) -> None:
    """What a text is read as is written as a text that is read as the same."""
    try:
        value = read(text)
    except refusal as error:
        str(error).encode()
        return
    again = read(str(value))
    assert again == value
    assert str(again) == str(value)


def read_device(document: object) -> Attributes | None:
    """The attributes in the document, if it has such; written and read again they are the same."""
    try:
        attributes = read_attributes(document, "attributes")
    except AttributeValueError as error:
        str(error).encode()
        return None
    again = read_attributes(json.loads(json.dumps(write_attributes(attributes))), "attributes")
    assert again == attributes
    assert signature_of(again) == signature_of(attributes)
    return attributes


def read_class(document: object, device: Attributes) -> None:
    """A class written and read again is the same, and its answer and its explanation say the same."""
    try:
        spec = read_spec(document)
    except ResourceClassError as error:
        str(error).encode()
        return
    assert read_spec(json.loads(json.dumps(write_spec(spec)))) == spec
    answers_agree(spec, device)


def answers_agree(spec: ResourceClassSpec, device: Attributes) -> None:
    found = match(spec, device)
    outcomes = {selector.outcome for selector in explain(spec, device)}
    assert found.selected == (Outcome.HOLDS in outcomes)
    assert bool(found.uncomparable) == (not found.selected and Outcome.UNCOMPARABLE in outcomes)


def class_of_lines(text: str) -> object:
    """A class out of lines of `key operator value,value`; an empty line begins the next selector."""
    blocks = [[_expression(line) for line in block.splitlines()] for block in text.split("\n\n")]
    return {"resourceSelector": [{"matchExpressions": block} for block in blocks]}


def _expression(line: str) -> dict[str, object]:
    key, operator, values = (*line.split(" ", 2), "", "")[:3]
    return {"key": key, "operator": operator} | ({"values": values.split(",")} if values else {})


def _text(data: bytes) -> str:
    """Any bytes as a text; half of a character pair (a surrogate) comes through, as it does in JSON."""
    try:
        return data.decode(errors="surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin-1")
