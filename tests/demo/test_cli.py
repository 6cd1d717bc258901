"""The command line: what it refuses, and how."""

import json
import subprocess
import sys

import pytest

from ad4edu_train.demo.__main__ import main


def test_help_does_not_load_heavy_packages():
    code = (
        "import sys\nfrom ad4edu_train.demo.__main__ import main\n"
        "try:\n    main(['write', '--help'])\nexcept SystemExit:\n    pass\n"
        "print({'torch', 'pyarrow', 'sklearn', 'PIL'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("set()")


def test_write_then_audit_a_folder(tmp_path, capsys):
    assert main(["write", str(tmp_path / "d"), "--moments", "8"]) == 0
    assert main(["audit", str(tmp_path / "d")]) in (0, 1)
    assert "synthetic" in capsys.readouterr().out.lower()
    assert json.loads((tmp_path / "d/SYNTHETIC.json").read_text())["scale"] == "moments"


def test_a_folder_with_other_files_is_refused_and_kept(tmp_path, capsys):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(SystemExit) as stop:
        main(["write", str(tmp_path), "--moments", "8"])
    assert stop.value.code == 2
    assert "not a demo folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    "arguments", [["--moments", "3"], ["--moments", "many"], ["--scale", "huge"], ["--moments", "9", "--scale", "card"]]
)
def test_impossible_sizes_are_refused(arguments, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["write", str(tmp_path / "d"), *arguments])
    assert stop.value.code == 2
    assert not (tmp_path / "d").exists()
    assert "error" in capsys.readouterr().err


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_text("x")])
def test_audit_of_something_else_is_one_line(make, tmp_path, capsys):
    make(tmp_path / "d")
    with pytest.raises(SystemExit) as stop:
        main(["audit", str(tmp_path / "d")])
    assert stop.value.code == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_file_in_place_of_the_folder_is_refused(tmp_path, capsys):
    (tmp_path / "d").write_text("x")
    with pytest.raises(SystemExit) as stop:
        main(["write", str(tmp_path / "d"), "--moments", "8"])
    assert stop.value.code == 2
    assert "is a file" in capsys.readouterr().err
