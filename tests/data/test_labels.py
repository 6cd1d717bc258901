"""Other people's labels in every form, and what is refused."""

import json
import textwrap

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ad4edu_train.data.labels import SWAPPED, read_labels
from ad4edu_train.errors import DataError

ROWS = [
    {"id": "x", "left": "one two", "right": "one", "topic": "t1", "r1": 1, "r2": 2, "judge": "B"},
    {"id": "y", "left": "a", "right": "b c", "topic": "t1", "r1": 0, "r2": None, "judge": "?"},
    {"id": "z", "left": "d", "right": "e", "topic": "t2", "r1": 2, "r2": 2, "judge": "A"},
]
MAPPING = """
    file: {file}
    pair_id: id
    cluster: topic
    first: left
    second: right
    labels: {{first: [1], second: [2], tie: [0]}}
    raters: {{anna: r1, ben: r2}}
    judges:
      machine: {{column: judge, labels: {{first: [A], second: [B], unparsed: ["?"]}}}}
"""


def write_jsonl(path):
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))


def write_json(path):
    path.write_text("\ufeff \n" + json.dumps(ROWS, indent=4))


def write_csv(path, delimiter=","):
    lines = [list(ROWS[0]), *([("" if value is None else str(value)) for value in row.values()] for row in ROWS)]
    path.write_text("\ufeff" + "\r\n".join(delimiter.join(f'"{cell}"' for cell in line) for line in lines) + "\r\n")


def write_parquet(path):
    # r2 has a gap, so a writer such as pandas makes it floats: 2.0 is the label 2.
    pq.write_table(
        pa.table({name: [float(row[name]) if name == "r2" and row[name] else row[name] for row in ROWS] for name in ROWS[0]}),
        path,
    )


def mapping(tmp_path, text, **names):
    path = tmp_path / "labels.yaml"
    path.write_text(textwrap.dedent(text).format(**names) if names else textwrap.dedent(text))
    return path


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("pairs.jsonl", write_jsonl),
        ("pairs.json", write_json),
        ("pairs.csv", write_csv),
        ("pairs.tsv", lambda path: write_csv(path, "\t")),
        ("pairs.parquet", write_parquet),
    ],
)
def test_every_form_gives_the_same_rows(tmp_path, name, write):
    write(tmp_path / name)
    labels = read_labels(mapping(tmp_path, MAPPING, file=name))
    assert [pair.pair_id for pair in labels.pairs] == ["x", "y", "z"]
    assert [pair.cluster for pair in labels.pairs] == ["t1", "t1", "t2"]
    assert [pair.first for pair in labels.pairs] == ["one two", "a", "d"]
    assert [pair.votes["anna"] for pair in labels.pairs] == ["first", "tie", "second"]
    assert [pair.votes["ben"] for pair in labels.pairs] == ["second", None, "second"]
    assert [pair.votes["machine"] for pair in labels.pairs] == ["second", "unparsed", "first"]
    assert (labels.raters, labels.judges, list(labels.digests)) == (["anna", "ben"], ["machine"], [name])


SMALL = "file: p.json\nlabels: {first: [1], second: [2]}\nraters: {r: r1}\n"


def judged(
    tmp_path, rows, extra, text="file: p.json\npair_id: id\nlabels: {first: [1], second: [2]}\nraters: {r: r1}\njudges:\n"
):
    (tmp_path / "p.json").write_text(json.dumps([{"id": 1, "r1": 1}, {"id": 2, "r1": 2}]))
    (tmp_path / "j.json").write_text(json.dumps(rows))
    return mapping(tmp_path, text + extra)


def test_a_judge_in_a_file_of_its_own_is_joined_on_the_id(tmp_path):
    rows = [{"key": "2", "say": {"x": ["1"]}}, {"key": "1", "say": {"x": ["2"]}}]
    labels = read_labels(judged(tmp_path, rows, "  j: {file: j.json, pair_id: key, column: say.x.0}\n"))
    assert [pair.votes["j"] for pair in labels.pairs] == ["second", "first"]
    assert set(labels.digests) == {"p.json", "j.json"}


@pytest.mark.parametrize(("says", "expected"), [("side", "second"), ("position", "first")])
def test_a_swapped_verdict_names_a_side_or_a_place(tmp_path, says, expected):
    rows = [{"id": 1, "v": 1, "s": 2}, {"id": 2, "v": 1, "s": None}]
    text = f"  j: {{file: j.json, column: v, swapped: s, swapped_says: {says}}}\n"
    labels = read_labels(judged(tmp_path, rows, text))
    assert [pair.votes["j" + SWAPPED] for pair in labels.pairs] == [expected, None]
    assert labels.swapped == ["j"]


def test_files_of_different_pairs_are_refused(tmp_path):
    rows = [{"id": 1, "v": 1}, {"id": 3, "v": 1}]
    with pytest.raises(DataError, match=r"different pairs: 1 of p.json are not in j.json \(first: '2'\), 1 the other way"):
        read_labels(judged(tmp_path, rows, "  j: {file: j.json, column: v}\n"))


def test_without_id_and_cluster_every_row_stands_alone(tmp_path):
    (tmp_path / "p.json").write_text('[{"r1": 1}, {"r1": "2"}, {"r1": 1.0}]')
    labels = read_labels(mapping(tmp_path, SMALL))
    assert [(pair.pair_id, pair.cluster, pair.votes["r"]) for pair in labels.pairs] == [
        ("1", "1", "first"),
        ("2", "2", "second"),
        ("3", "3", "first"),
    ]


def test_texts_that_a_writer_turned_into_other_types_stay_texts(tmp_path):
    (tmp_path / "p.json").write_text('[{"r1": 1, "a": true, "b": 12}]')
    pair = read_labels(mapping(tmp_path, SMALL + "first: a\nsecond: b\n")).pairs[0]
    assert (pair.first, pair.second) == ("True", "12")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"r1": 1}, {"r1": "Tie"}]', r"row 2: r1 is 'Tie'; the mapping knows '1', '2'"),
        ('[{"r1": 1}, {"r1": [1]}]', r"row 2: \[1\] is neither text nor a number"),
        ('[{"r1": 1}, 5]', "row 2: is 5, not an object"),
        ('[{"r1": 1}, {"r2": 1}]', "row 2: column r1 is missing"),
        ('[{"vote": 1, "text": "x"}]', "no column r1, which the mapping names. Its columns: vote, text"),
        ("[]", "holds no pairs"),
        ("", "is empty"),
        ('[{"r1": 1}', "not valid JSON"),
    ],
)
def test_unusable_files_are_named(tmp_path, content, message):
    (tmp_path / "p.json").write_text(content)
    with pytest.raises(DataError, match=message):
        read_labels(mapping(tmp_path, SMALL))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("r1,r1\n1,2\n", "column r1 twice"),
        ("r1,b\n1,2\n1\n", "row 2: has 1 cells under 2 columns"),
        ('r1\n"1\n', "no valid CSV"),
        ("r1\n\xff\n", "no valid CSV in UTF-8"),
    ],
)
def test_unusable_csv_is_named(tmp_path, content, message):
    (tmp_path / "p.csv").write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=message):
        read_labels(mapping(tmp_path, SMALL.replace("p.json", "p.csv")))


def test_a_pair_that_stands_twice_is_refused(tmp_path):
    (tmp_path / "p.json").write_text('[{"id": 1, "r1": 1}, {"id": "1", "r1": 2}]')
    with pytest.raises(DataError, match="the id stands on an earlier row too"):
        read_labels(mapping(tmp_path, SMALL + "pair_id: id\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("just text", "no mapping of keys"),
        ("a: [", "not valid YAML"),
        ("labels: {first: [1], second: [2]}\nraters: {r: x}", "file: Field required"),
        (SMALL + "colour: red\n", "colour: Extra inputs"),
        ("file: p\nraters: {r: x}", "r has no `labels`"),
        ("file: p\nlabels: {first: [1], second: ['1']}\nraters: {r: x}", "'1' stands in the vocabulary twice"),
        ("file: p\nlabels: {first: [], second: [2]}\nraters: {r: x}", "labels.first"),
        ("file: p\nlabels: {first: [1], second: [2]}\nraters: {}", "raters"),
        (SMALL + "judges: {r: x}\n", "a rater and a judge need different names"),
        (SMALL + "judges: {j: {column: x, file: q}}\n", "`pair_id` must name the column"),
        (
            "file: p\nlabels: {first: [1], second: [2]}\nraters: {r: {column: x, swapped: y}}",
            "only judges are asked in both orders",
        ),
    ],
)
def test_unusable_mappings_are_named(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_labels(mapping(tmp_path, text))


def test_absent_files_are_named(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.yaml cannot be read"):
        read_labels(tmp_path / "nowhere.yaml")
    with pytest.raises(DataError, match=r"p.json cannot be read"):
        read_labels(mapping(tmp_path, SMALL))
