"""Traces are read as a whole, and a fault is named by file, line and column."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.commands.trace import TraceError, TraceNode, read_nodes, read_tasks

NODE_HEADER = "sn,cpu_milli,memory_mib,gpu,model"
TASK_HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time"


def written(folder: Path, *lines: str, encoding: str = "utf-8") -> Path:
    file = folder / "file.csv"
    file.write_text("\n".join(lines), encoding=encoding)
    return file


def test_a_node_has_memory_in_bytes_and_a_thousand_milli_gpus_a_card(tmp_path: Path) -> None:
    node = read_nodes(written(tmp_path, NODE_HEADER, "n1,32000,262144,2,T4"))[0]
    assert node.instance == "n1"
    assert node.total == {"memory": 262144 * 2**20, "vcore": 32000, "gpu_milli": 2000}
    assert (node.gpus, node.model) == (2, "T4")


def test_a_node_without_cards_has_no_such_dimension_and_no_model(tmp_path: Path) -> None:
    node = read_nodes(written(tmp_path, NODE_HEADER, "n1,32000,262144,0,"))[0]
    assert node.total == {"memory": 262144 * 2**20, "vcore": 32000}
    assert node.model is None


def test_a_task_asks_for_its_share_of_each_of_its_cards(tmp_path: Path) -> None:
    task = read_tasks(written(tmp_path, TASK_HEADER, "t1,500,1024,2,250,T4|A10,BE,7,9"))[0]
    assert task.resource == {"memory": 2**30, "vcore": 500, "gpu_milli": 500}
    assert (task.gpus, task.models, task.qos) == (2, ("A10", "T4"), "BE")
    assert (task.created, task.deleted) == (7, 9)


def test_a_share_without_cards_counts_for_nothing(tmp_path: Path) -> None:
    task = read_tasks(written(tmp_path, TASK_HEADER, "t1,500,0,0,250,,,7,"))[0]
    assert task.resource == {"vcore": 500}
    assert task.deleted is None


def test_columns_are_found_by_name_in_any_order_and_others_are_ignored(tmp_path: Path) -> None:
    file = written(
        tmp_path, "model,gpu,zone,memory_mib,cpu_milli,sn", "T4,1,z,1,2,n1", "", encoding="utf-8-sig"
    )
    assert read_nodes(file)[0].total == {"memory": 2**20, "vcore": 2, "gpu_milli": 1000}


@pytest.mark.parametrize(
    ("line", "column", "reason"),
    [
        ("n2,many,1,0,", "cpu_milli", "'many' is not a whole number"),
        ("n2,1,-5,0,", "memory_mib", "'-5' is not a whole number"),
        ("n2,1,1.5,0,", "memory_mib", "'1.5' is not a whole number"),
        ("n2,1,9223372036854775807,0,", "memory_mib", "too large"),
        ("n2,1,1,9999999999999999999999,", "gpu", "is not a whole number"),
        ("n2,1,\u0661,0,", "memory_mib", "is not a whole number"),
        ("n2,1,1,1,", "model", "is empty, but the node has 1 GPUs"),
        (",1,1,0,", "sn", "is empty"),
        ("n1,1,1,0,", "sn", "'n1' is in line 2 already"),
        ("n\x1b2,1,1,0,", "sn", "control character"),
        ("n2,1,1,0", "", "4 values under 5 columns"),
        ('n2,1,1,0,"T4', "", "unexpected end of data"),
    ],
)
def test_a_wrong_node_is_named_by_line_and_column(
    tmp_path: Path, line: str, column: str, reason: str
) -> None:
    file = written(tmp_path, NODE_HEADER, "n1,1,1,0,", line)
    with pytest.raises(TraceError, match=reason) as caught:
        read_nodes(file)
    assert (caught.value.file, caught.value.line, caught.value.column) == (file, 3, column)
    assert str(file) in str(caught.value)
    assert "line 3" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "column", "reason"),
    [
        ("t1,1,1,1,1001,,LS,0,1", "gpu_milli", "more than one card's 1000"),
        ("t1,1,1,0,0,,LS,5,4", "deletion_time", "4 is before the creation at 5"),
        ("t1,1,1,0,0,,LS,,4", "creation_time", "is not a whole number"),
        ("t1,0,0,0,0,,LS,0,1", "cpu_milli", "asks for nothing"),
    ],
)
def test_a_wrong_task_is_named_by_line_and_column(
    tmp_path: Path, line: str, column: str, reason: str
) -> None:
    with pytest.raises(TraceError, match=reason) as caught:
        read_tasks(written(tmp_path, TASK_HEADER, line))
    assert (caught.value.line, caught.value.column) == (2, column)


@pytest.mark.parametrize(
    ("header", "column", "reason"),
    [
        ("sn,cpu_milli,memory_mib,gpu", "model", "missing"),
        ("sn,cpu_milli,memory_mib,gpu,model,gpu", "gpu", "twice"),
        ("", "sn", "missing"),
    ],
)
def test_a_wrong_header_is_named_by_its_column(tmp_path: Path, header: str, column: str, reason: str) -> None:
    with pytest.raises(TraceError, match=reason) as caught:
        read_nodes(written(tmp_path, header, "n1,1,1,0,"))
    assert (caught.value.line, caught.value.column) == (1, column)


def test_a_file_without_a_line_below_its_header_is_none(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no line below the header"):
        read_nodes(written(tmp_path, NODE_HEADER))


def test_bytes_that_are_no_text_are_named_by_their_line(tmp_path: Path) -> None:
    file = tmp_path / "file.csv"
    file.write_bytes(f"{NODE_HEADER}\nn1,1,1,0,\n".encode() + b"n\xff,1,1,0,\n")
    with pytest.raises(TraceError, match="is not UTF-8"):
        read_nodes(file)


@given(st.text(max_size=60))
def test_whatever_stands_in_a_file_is_read_or_named(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.csv"
    file.write_bytes(f"{NODE_HEADER}\n{text}".encode(errors="surrogatepass"))
    nodes: list[TraceNode] = []
    with contextlib.suppress(TraceError):
        nodes = read_nodes(file)
    assert all(node.instance and min(node.total.values()) >= 0 for node in nodes)
