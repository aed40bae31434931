import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.tags import TagError, canonical_key, check_tags, parse_canonical_key

any_text = st.text(st.sampled_from("ab=,\\ é") | st.characters(), max_size=6)
any_tags = st.dictionaries(any_text, any_text, max_size=4)


@pytest.mark.parametrize(
    "tags",
    [
        {},
        {"user": "alice"},
        {"user": ""},
        {"siodev.io/app": "a b", "0": "=,;", "a_b.c-d/e": "Zoë 日本"},
        {"k" * 128: "v" * 256},
        {f"k{number}": "v" for number in range(64)},
    ],
)
def test_good_tags_are_returned_as_they_are(tags: dict[str, str]) -> None:
    assert check_tags(tags) == tags


@pytest.mark.parametrize(
    ("tags", "key"),
    [
        ({"": "v"}, ""),
        ({"_a": "v"}, "_a"),
        ({"a b": "v"}, "a b"),
        ({"a\n": "v"}, "a\n"),
        ({"é": "v"}, "é"),
        ({"k" * 129: "v"}, "k" * 129),
        ({7: "v"}, "7"),
        ({"good": "v", "user": 7}, "user"),
        ({"user": None}, "user"),
        ({"user": "v" * 257}, "user"),
        ({"user": "a\nb"}, "user"),
        ({"user": "a\x00"}, "user"),
        ({"user": "a\x85"}, "user"),
        ({"user": "a\u2028"}, "user"),
        ({"user": "\ud800"}, "user"),
        ({f"k{number}": "v" for number in range(65)}, ""),
        (["user"], ""),
        (None, ""),
    ],
)
def test_a_bad_tag_is_named(tags: object, key: str) -> None:
    with pytest.raises(TagError) as caught:
        check_tags(tags)
    assert caught.value.key == key
    assert caught.value.reason


@pytest.mark.parametrize(
    ("tags", "text"),
    [
        ({}, ""),
        ({"user": "alice"}, "user=alice"),
        ({"user": "alice", "creator": "IDE"}, "creator=IDE,user=alice"),
        ({"a": "x,b=y"}, r"a=x\,b=y"),
        ({"a": "x\\"}, r"a=x\\"),
    ],
)
def test_the_canonical_key_is_sorted_and_escaped(tags: dict[str, str], text: str) -> None:
    assert canonical_key(tags) == text


@given(any_tags)
def test_the_canonical_key_can_be_read_back_so_different_tags_never_share_one(tags: dict[str, str]) -> None:
    assert parse_canonical_key(canonical_key(tags)) == tags


@given(any_tags)
def test_the_canonical_key_does_not_depend_on_the_order_of_the_tags(tags: dict[str, str]) -> None:
    assert canonical_key(dict(reversed(tags.items()))) == canonical_key(tags)


@pytest.mark.parametrize("text", ["user", "b=1,a=2", "a=1,a=2", "a=1,", ",a=1", "a=1\\", "a=\\x", "a=1,,b=2"])
def test_other_texts_are_no_canonical_keys(text: str) -> None:
    with pytest.raises(TagError):
        parse_canonical_key(text)
