"""What can be wrong with a file before any rule of the contract is asked."""

import json
import os
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ad4edu_train.data.files import Record, Unreadable, read_json, read_records
from ad4edu_train.errors import DataError
from tests.data.conftest import check_files, human_row, message, train_row, write_jsonl, write_parquet

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1234\n"


def lines(rows):
    return [json.dumps(row, ensure_ascii=False).encode() for row in rows]


def kept(path):
    return check_files(keep=["train"], train=path)


def test_parquet_and_jsonl_give_the_same_typed_rows(tmp_path):
    train = [train_row(0), train_row(1, **{"chosen-rating": None, "rejected-components": None, "what_differs": "a b"})]
    test = [human_row(0), human_row(1, votes=("tie", None, "tie", "tie"), winner=None, label_source=None)]
    parquet = check_files(
        ["train", "test_human"],
        train=write_parquet(tmp_path / "a.parquet", train),
        test_human=write_parquet(tmp_path / "b.parquet", test),
    )
    jsonl = check_files(
        ["train", "test_human"],
        train=write_jsonl(tmp_path / "a.jsonl", train),
        test_human=write_jsonl(tmp_path / "b.jsonl", test),
    )
    assert not parquet.problems
    assert not jsonl.problems
    assert len(parquet.kept["train"]) == len(parquet.kept["test_human"]) == 2
    assert parquet.kept == jsonl.kept


def test_a_column_that_is_null_in_its_first_block_keeps_its_later_values(tmp_path):
    """datasets-7222: the type comes from the contract, not from the first rows."""
    rows = [human_row(n, votes=(None,) * 4, winner=None) for n in range(3)] + [human_row(n) for n in range(3, 6)]
    for path in (
        write_parquet(tmp_path / "a.parquet", rows, row_group_size=3),
        write_jsonl(tmp_path / "a.jsonl", rows),
    ):
        found = check_files(["test_human"], test_human=path)
        assert not found.problems
        assert [row.human_winner for row in found.kept["test_human"]] == [None] * 3 + ["option_a"] * 3


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_a_shard_of_nulls_and_a_shard_of_values_load_in_either_order(tmp_path, order, kind):
    """datasets-7222: two shards, human_winner and components.faithfulness null in all of the first."""
    scored = {"style": 1.0, "faithfulness": 0.75}
    shards = [
        [human_row(n, votes=(None,) * 4, winner=None) for n in range(2)],
        [human_row(n, **{"option_a-components": scored}) for n in range(2, 4)],
    ]
    if kind == "parquet":
        # Written as a careless exporter does: the type of each column comes from this shard alone, so it is Arrow's null.
        paths = [tmp_path / f"{k}.parquet" for k in order]
        for k, path in zip(order, paths, strict=True):
            pq.write_table(pa.Table.from_pylist(shards[k]), path)
        assert pq.read_schema(paths[order.index(0)]).field("human_winner").type == pa.null()
    else:
        paths = [write_jsonl(tmp_path / f"{k}.jsonl", shards[k]) for k in order]
    found = check_files(["test_human"], test_human=paths)
    assert not found.problems
    winners = {row.pair_id: row.human_winner for row in found.kept["test_human"]}
    assert winners == {"h-0": None, "h-1": None, "h-2": "option_a", "h-3": "option_a"}
    assert {row.first.components["faithfulness"] for row in found.kept["test_human"]} == {None, 0.75}


def test_an_all_null_label_column_is_zero_labelled_pairs(tmp_path):
    """datasets-7222: the all-null labels file."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([human_row(n, votes=(None,) * 4, winner=None) for n in range(2)]), path)
    found = check_files(["test_human"], test_human=path)
    assert not found.problems
    assert found.tallies["test_human"].by["winner", "none"] == 2


def test_crlf_bom_and_blank_lines_change_nothing(tmp_path):
    rows = [train_row(n) for n in range(3)]
    plain = write_jsonl(tmp_path / "plain.jsonl", rows)
    odd = tmp_path / "odd.jsonl"
    a, b, c = lines(rows)
    odd.write_bytes(b"\xef\xbb\xbf" + a + b"\r\n\r\n  \n" + b + b"\r\n" + c)
    assert kept(odd).kept == kept(plain).kept
    assert [record.row for record in read_records(odd)] == [1, 4, 5]


def test_line_separators_inside_text_do_not_split_a_row(tmp_path):
    """openenv-1154: str.splitlines would split at U+2028, U+2029, U+0085, form feed and vertical tab."""
    text = "one\u2028two\u2029three\x85four\x0cfive\x0bsix"
    path = write_jsonl(tmp_path / "a.jsonl", [train_row(0, what_differs=text), train_row(1)])
    found = kept(path)
    assert not found.problems
    assert found.kept["train"][0].what_differs == text


def test_a_torn_last_line_is_named_and_the_rows_before_it_stay(tmp_path):
    """openenv-1154: three good lines, then half a row without a newline."""
    path = write_jsonl(tmp_path / "a.jsonl", [train_row(n) for n in range(3)])
    path.write_bytes(path.read_bytes() + b'{"prompt_id":"ab", "text":"The ca')
    found = kept(path)
    assert "1 of 4 rows: the row cannot be read\n  row 4: is torn: the file ends in the middle" in message(found)
    assert len(found.kept["train"]) == 3


def test_a_last_line_torn_inside_a_character_is_torn(tmp_path):
    """openenv-1154: the cut may fall inside a character of several bytes."""
    path = write_jsonl(tmp_path / "a.jsonl", [train_row(0)])
    path.write_bytes(path.read_bytes() + '{"prompt": "caf\u00e9'.encode()[:-1])
    assert "row 2: is torn" in message(kept(path))


def test_a_whole_last_line_without_newline_is_a_row(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", [train_row(0), train_row(1)])
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert not kept(path).problems


def test_every_bad_line_is_named_in_one_message(tmp_path):
    """openenv-1154: a bad line in the middle is an error, not skipped."""
    good = lines([train_row(n) for n in range(2)])
    path = tmp_path / "a.jsonl"
    bad = [b"{oops}", b"[1]", b'"text"', b"null", b"true", b"12", b'{"pair_id": "\xff"}']
    path.write_bytes(b"\n".join([good[0], *bad, good[1], b""]))
    found = kept(path)
    text = message(found)
    assert f"{path}: 7 of 9 rows: the row cannot be read" in text
    for row, reason in (
        (2, "is not JSON"),
        (3, "is an array"),
        (4, "is a string"),
        (5, "is null"),
        (6, "is a boolean"),
        (7, "is a number"),
        (8, "is not UTF-8 (byte 14 of the line)"),
    ):
        assert f"row {row}: {reason}" in text
    assert [row.pair_id for row in found.kept["train"]] == ["t-0", "t-1"]


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"a": ' * 100_000 + b"1" + b"}" * 100_000,
        b'{"a": ' + b"9" * 5000 + b"}",
        b"\x00" * 10,
        b"\xff\xfe{\x00}\x00",
    ],
    ids=["deep array", "deep object", "number of 5000 digits", "null bytes", "UTF-16"],
)
def test_hostile_lines_are_rows_that_cannot_be_read(tmp_path, line):
    path = tmp_path / "a.jsonl"
    path.write_bytes(line + b"\n" + lines([train_row(0)])[0] + b"\n")
    first, second = read_records(path)
    assert isinstance(first, Unreadable)
    assert first.row == 1
    assert isinstance(second, Record)


def test_a_deeply_nested_value_in_a_column_is_refused_in_one_line(tmp_path):
    nested = "x"
    for _ in range(400):
        nested = [nested]
    path = write_jsonl(tmp_path / "a.jsonl", [train_row(0, lecture=nested), train_row(1, axis={"a": nested})])
    text = message(kept(path))
    assert re.search(r"pair_id t-0 \(row 1\): lecture is \[{2,7}\.\.\.\]{2,7}, not text", text)
    assert "pair_id t-1 (row 2): axis is" in text
    assert max(map(len, text.splitlines())) < 300


def test_half_of_a_surrogate_pair_is_refused_with_column_and_pair_id(tmp_path):
    path = tmp_path / "a.jsonl"
    row = json.dumps(train_row(0, what_differs="HALF", chosen=[{"role": "user", "content": "HALF"}]))
    whole = json.dumps(train_row(1, what_differs="an emoji: \U0001f600"), ensure_ascii=True)
    assert "\\ud83d\\ude00" in whole
    path.write_text(row.replace("HALF", "\\uD800") + "\n" + whole + "\n")
    found = kept(path)
    assert "pair_id t-0 (row 1): holds half of a surrogate pair, which is no valid text, in chosen, what_differs" in message(
        found
    )
    assert [pair.what_differs for pair in found.kept["train"]] == ["an emoji: \U0001f600"]


def test_an_id_that_is_half_a_surrogate_pair_can_still_be_printed(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(train_row(0, pair_id="HALF")).replace("HALF", "\\udfff") + "\n")
    assert "pair_id \\udfff (row 1)" in message(kept(path)).encode("utf-8").decode()


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl"])
def test_a_git_lfs_pointer_is_named_as_one(tmp_path, name):
    (tmp_path / name).write_bytes(POINTER)
    with pytest.raises(DataError, match=rf"{name} is a Git LFS pointer, not data. Run `git lfs pull`"):
        list(read_records(tmp_path / name))


def test_a_git_lfs_pointer_in_place_of_a_json_map_is_named_as_one(tmp_path):
    (tmp_path / "a.json").write_bytes(POINTER)
    with pytest.raises(DataError, match="is a Git LFS pointer"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl"])
def test_an_empty_file_is_refused(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(DataError, match=rf"{name} is empty"):
        list(read_records(tmp_path / name))


def test_a_parquet_file_cut_short_is_damaged(tmp_path):
    path = write_parquet(tmp_path / "a.parquet", [train_row(n) for n in range(50)])
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match=r"a\.parquet is damaged"):
        list(read_records(path))


def test_a_parquet_file_damaged_in_a_later_block_says_after_which_row(tmp_path):
    path = write_parquet(tmp_path / "a.parquet", [train_row(n) for n in range(3000)], row_group_size=1024)
    content = bytearray(path.read_bytes())
    last = pq.ParquetFile(path).metadata.row_group(2)
    start = last.column(0).dictionary_page_offset or last.column(0).data_page_offset
    size = sum(last.column(index).total_compressed_size for index in range(last.num_columns))
    content[start : start + size] = b"\xff" * size
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"is damaged, reading stopped after row (1024|2048):"):
        list(read_records(path))


def test_text_under_a_parquet_name_is_no_parquet(tmp_path):
    (tmp_path / "a.parquet").write_text("<html>404</html>")
    with pytest.raises(DataError, match="does not begin with PAR1"):
        list(read_records(tmp_path / "a.parquet"))


def test_parquet_under_another_name_is_read_as_parquet(tmp_path):
    path = write_parquet(tmp_path / "a.parquet", [train_row(0)]).rename(tmp_path / "a.bin")
    assert not kept(path).problems


def test_a_compressed_file_is_named_as_one(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(b"\x1f\x8b\x08" + b"\x00" * 40)
    with pytest.raises(DataError, match="is compressed"):
        list(read_records(tmp_path / "a.jsonl.gz"))


def test_parquet_text_that_is_not_utf8_spoils_only_its_row(tmp_path):
    rows = [train_row(n, what_differs="x") for n in range(3)]
    table = pa.Table.from_pylist(rows)
    broken = pa.array([b"x", b"\xff\xfe", b"x"], pa.binary()).view(pa.string())
    table = table.set_column(table.schema.names.index("what_differs"), "what_differs", broken)
    pq.write_table(table, tmp_path / "a.parquet")
    found = kept(tmp_path / "a.parquet")
    assert "pair_id t-1 (row 2): holds values that cannot be read in what_differs" in message(found)
    assert [row.pair_id for row in found.kept["train"]] == ["t-0", "t-2"]


@pytest.mark.parametrize("read", [read_json, lambda path: list(read_records(path))])
def test_a_missing_file_and_a_folder_are_refused_without_a_traceback(tmp_path, read):
    for path in (tmp_path / "absent.jsonl", tmp_path):
        with pytest.raises(DataError, match="cannot be read: "):
            read(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", [train_row(0)])
    path.chmod(0)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        list(read_records(path))


@pytest.mark.parametrize(
    "content",
    [b"{", b"\xff", b"[" * 100_000, b"9" * 5000, b'{"a": "\\ud800"}', b""],
    ids=["torn", "bytes", "deep", "big", "half", "empty"],
)
def test_a_bad_json_file_is_refused_by_name(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.json"):
        read_json(tmp_path / "a.json")
