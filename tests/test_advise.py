"""`rankscope advise`: hyperparameter files as people have them, held against versions of a trainer."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

FILES = Path(__file__).resolve().parent.parent / "fixtures" / "advise"
KEYS = {"file", "trainer", "version", "version_from", "section", "keys", "findings"}
FINDING = {"file", "line", "column", "key", "in_file", "severity", "rule", "what", "why", "do", "price"}
VERSIONS = ("1.9.0", "1.9.4", "1.10.1", "1.11.2")


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)


@pytest.fixture
def advise(rankscope):
    def advise(file, *options, check):
        before = Path(file).read_bytes()
        done = rankscope.run("advise", file, "--json", *options, check=check)
        assert Path(file).read_bytes() == before, "a file was edited"
        answer = json.loads(done.stdout)
        assert answer.keys() == KEYS
        for finding in answer["findings"]:
            assert finding.keys() == FINDING
            assert finding["severity"] in ("error", "deprecated", "cost", "hint")
            assert finding["line"] >= 1
            assert finding["column"] >= 1
            assert finding["what"]
        places = [(finding["line"], finding["column"]) for finding in answer["findings"]]
        assert places == sorted(places)
        asks = any(finding["severity"] != "hint" for finding in answer["findings"])
        assert check == (1 if asks else 0)
        return answer

    return advise


def short(answer):
    return {(finding["rule"], finding["line"], finding["key"]) for finding in answer["findings"]}


def test_what_is_right_on_1_9_is_not_on_1_11(advise):
    good = FILES / "good-1.9.4.yaml"
    assert advise(good, "--trainer-version", "1.9.4", check=0)["findings"] == []
    answer = advise(good, "--trainer-version", "1.11.2", check=1)
    assert short(answer) == {("eval_ema_only_deprecated", 11, "eval_ema_only")}
    assert answer["findings"][0]["severity"] == "deprecated"
    assert "1.13" in answer["findings"][0]["what"]


def test_what_is_right_on_1_11_is_not_on_1_9(advise):
    good = FILES / "good-1.11.2.yaml"
    assert advise(good, "--trainer-version", "1.11.2", check=0)["findings"] == []
    found = short(advise(good, "--trainer-version", "1.9.4", check=1))
    assert {("unknown", 12, "eval_batch_size"), ("unknown", 13, "eval_backend")} <= found
    assert {rule for rule, _, _ in found} == {"unknown", "validates_two_models", "per_class_metrics"}


@pytest.mark.parametrize(("ending", "first"), [("yaml", 5), ("toml", 5), ("json", 5)])
def test_each_format_has_the_same_findings(advise, ending, first):
    answer = advise(FILES / f"traps.{ending}", "--trainer-version", "1.9.4", check=1)
    assert (answer["trainer"], answer["section"], answer["version_from"]) == ("rfdetr", "train", "given")
    in_file = {(f["rule"], f["line"] - first, f["key"]) for f in answer["findings"] if f["in_file"]}
    assert in_file == {
        ("unknown", 0, "epoch"),
        ("range", 1, "batch_size"),
        ("type", 2, "lr"),
        ("validates_every_epoch", 3, "eval_interval"),
        ("newer_evaluates_one_model", 3, "eval_interval"),
        ("ema_only_needs_ema", 4, "eval_ema_only"),
        ("no_workers", 6, "num_workers"),
    }
    (epoch,) = [f for f in answer["findings"] if f["key"] == "epoch"]
    assert epoch["do"] == "did you mean epochs?"
    priced = [f for f in answer["findings"] if f["severity"] == "cost"]
    assert priced
    assert all(f["price"] and f["do"] and f["why"] for f in priced)


def test_words_for_people_are_sorted_and_at_most_80_wide(rankscope):
    done = rankscope.run("advise", "traps.yaml", "--trainer-version", "1.9.4", check=1, cwd=FILES)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    heads = [line for line in lines if line.startswith("traps.yaml:")]
    numbers = [int(line.split(":")[1]) for line in heads]
    assert numbers == sorted(numbers)
    assert any(line.startswith("traps.yaml:5:3: error: epoch: ") for line in heads)
    assert "    price: " in done.stdout
    assert lines[-1].startswith("4 errors")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("ending", ["yaml", "yml"])
def test_the_template_is_a_file_without_findings(rankscope, advise, tmp_path, version, ending):
    done = rankscope.run("advise", "--template", "rfdetr", "--trainer-version", version, check=0)
    file = tmp_path / f"train.{ending}"
    file.write_text(done.stdout)
    answer = advise(file, "--trainer", "rfdetr", "--trainer-version", version, check=0)
    assert answer["findings"] == []
    assert answer["keys"] >= 4


def test_the_assumed_version_is_the_newest_and_said_to_be(rankscope, advise, tmp_path, monkeypatch):
    good = FILES / "good-1.11.2.yaml"
    answer = advise(good, check=0)
    assert (answer["version"], answer["version_from"]) == ("1.11.2", "assumed")
    assert "assumed" in rankscope.run("advise", good, check=0).stdout
    (tmp_path / "lib/python3.12/site-packages/rfdetr-1.9.4.dist-info").mkdir(parents=True)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    answer = advise(good, check=1)
    assert (answer["version"], answer["version_from"]) == ("1.9.4", "installed")
    assert advise(good, "--trainer-version", "1.11.2", check=0)["version_from"] == "given"


def test_versions_that_are_not_known_are_not_guessed(rankscope):
    good = FILES / "good-1.11.2.yaml"
    old = rankscope.run("advise", good, "--trainer-version", "1.8.3", check=3)
    assert "older than what the catalogue knows (1.9.0 to 1.11.2)" in old.stderr
    assert old.stdout == ""
    new = rankscope.run("advise", good, "--trainer-version", "2.0", check=0)
    assert "newer than what the catalogue knows: held against 1.11.2" in new.stderr
    assert "no version" in rankscope.run("advise", good, "--trainer-version", "new", check=2).stderr


OURS = """
[[trainer]]
id = "ours"
name = "Our trainer"
first = "1.0"
last = "2.0"
sections = ["hyper"]
named_by = { keys = ["trainer"], values = ["ours"] }
[[trainer.key]]
name = "steps"
type = "int"
min = 1
default = 10
template = 20
[[trainer.key]]
name = "mode"
also = ["fast", "exact"]
versions = ">=1.5"
default = "exact"
[[trainer.rule]]
id = "few_steps"
severity = "cost"
when = [{ key = "steps", below = 15 }]
what = "fewer than 15"
why = "start-up is most of the time"
do = "steps: 15 or more"
price = "none"
"""


def test_a_platform_adds_a_trainer(advise, rankscope, tmp_path, monkeypatch):
    (tmp_path / "catalogue").mkdir()
    (tmp_path / "catalogue" / "ours.toml").write_text(OURS)
    (tmp_path / "catalogue" / "notes.txt").write_text("not a catalogue")
    file = tmp_path / "job.yaml"
    file.write_text("trainer: ours\nhyper:\n  steps: 0\n  mode: fast\n  colour: red\n")
    options = ("--catalogue", tmp_path / "catalogue")
    answer = advise(file, *options, "--trainer-version", "1.2", check=1)
    assert short(answer) == {
        ("range", 3, "steps"),
        ("unknown", 4, "mode"),
        ("unknown", 5, "colour"),
    }
    file.write_text("trainer: ours\nhyper: {steps: 14}\n")
    assert short(advise(file, *options, check=1)) == {("few_steps", 2, "steps")}
    monkeypatch.setenv("RANKSCOPE_CATALOGUE", str(tmp_path / "catalogue" / "ours.toml"))
    template = rankscope.run("advise", "--template", "ours", check=0).stdout
    assert "steps: 20" in template
    assert '# mode: "exact"' in template


def test_a_platform_has_a_whitelist_for_a_known_trainer(advise, tmp_path):
    ours = tmp_path / "ours.toml"
    ours.write_text(
        '[[trainer]]\nid = "rfdetr"\nextends = true\n'
        'only = ["epochs", "lr", "batch_size"]\nonly_why = "the platform sets the rest"\n'
    )
    answer = advise(FILES / "good-1.11.2.yaml", "--catalogue", ours, check=1)
    refused = {f["key"]: f for f in answer["findings"] if f["rule"] == "not_allowed"}
    assert {"output_dir", "dataset_dir", "num_workers"} <= refused.keys()
    assert "lr" not in refused
    assert refused["output_dir"]["why"] == "the platform sets the rest"


def test_a_broken_catalogue_is_named_with_its_line(rankscope, tmp_path):
    broken = tmp_path / "broken.toml"
    broken.write_text(OURS.replace('id = "few_steps"', 'ident = "few_steps"'))
    done = rankscope.run("advise", FILES / "traps.yaml", "--catalogue", broken, check=3)
    assert f"{broken}:2" in done.stderr
    assert "ident" in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("a.yaml", b"trainer: rfdetr\ntrain: [1, 2\n", 2),
        ("a.yaml", b"trainer: rfdetr\n---\nb: 1\n", 2),
        ("a.yaml", b"trainer: rfdetr\nepochs: \xff\xfe\n", 2),
        ("a.yaml", b"[" * 10_000, 1),
        ("a.toml", b'trainer = "rfdetr"\nepochs =\n', 2),
        ("a.json", b'{"trainer": "rfdetr",\n "epochs": 1,}', 2),
        ("a.json", b'{"trainer": "rfdetr"', 1),
        ("a.yaml", b"- a\n- b\n", 1),
    ],
)
def test_what_cant_be_read_names_the_line(rankscope, tmp_path, name, content, line):
    file = tmp_path / name
    file.write_bytes(content)
    done = rankscope.run("advise", file, "--trainer", "rfdetr", check=3)
    assert f"{file}:{line}:" in done.stderr
    assert done.stdout == ""


def test_what_is_not_there_or_too_long(rankscope, tmp_path):
    gone = rankscope.run("advise", tmp_path / "gone.yaml", check=3)
    assert "gone.yaml: No such file" in gone.stderr
    long = tmp_path / "long.yaml"
    long.write_bytes(b"# " + b"x" * (1 << 20))
    assert "longer than 1048576 bytes" in rankscope.run("advise", long, check=3).stderr
    assert "Is a directory" in rankscope.run("advise", tmp_path, check=3).stderr
    bomb = tmp_path / "bomb.yaml"
    levels = [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    bomb.write_text("a0: &a0 [1, 1, 1, 1]\n" + "\n".join(levels))
    assert "more than 100000 values" in rankscope.run("advise", bomb, check=3).stderr


def test_wrong_use(rankscope, tmp_path):
    rankscope.run("advise", check=2)
    rankscope.run("advise", "a.yaml", "--template", "rfdetr", check=2)
    unknown = rankscope.run("advise", FILES / "traps.yaml", "--trainer", "other", check=2)
    assert "known: rfdetr" in unknown.stderr
    nameless = tmp_path / "nameless.yaml"
    nameless.write_text("epochs: 3\n")
    assert "--trainer" in rankscope.run("advise", nameless, check=2).stderr
    foreign = tmp_path / "foreign.yaml"
    foreign.write_text("trainer: rfdetr\nqueue: long\n")
    assert "no key of RF-DETR" in rankscope.run("advise", foreign, check=3).stderr
    task = rankscope.run("advise", FILES / "traps.yaml", "--task", "poetry", check=2)
    assert "segmentation" in task.stderr


def test_a_section_and_a_task_can_be_said(advise, tmp_path):
    file = tmp_path / "deep.yaml"
    file.write_text("stages:\n  first:\n    dataset_dir: d\n    eval_interval: 2\n    eval_ema_only: true\n")
    options = ("--trainer", "rfdetr", "--trainer-version", "1.9.4", "--section", "stages.first")
    answer = advise(file, *options, "--task", "segmentation", check=1)
    assert answer["section"] == "stages.first"
    assert ("newer_evaluates_one_model", 4, "eval_interval") in short(answer)
    assert "newer_evaluates_one_model" not in {rule for rule, _, _ in short(advise(file, *options, check=1))}


def test_hostile_text_moves_no_terminal(rankscope, tmp_path):
    file = tmp_path / "evil\x1b[2J.yaml"
    file.write_text('trainer: rfdetr\nepochs: "\\e[31mred\\u202e"\n"\\e]0;title\\a": 1\nlr: 1\nseed: 1\n')
    done = rankscope.run("advise", file, check=1)
    said = done.stdout + done.stderr
    assert "␛[31mred⟨U+202E⟩" in said
    assert not any(c < " " and c != "\n" for c in said)
    assert "\u202e" not in said
    answer = json.loads(rankscope.run("advise", file, "--json", check=1).stdout)
    assert "\x1b]0;title\x07" in {finding["key"] for finding in answer["findings"]}


def test_a_file_that_may_not_be_written_is_enough(rankscope, tmp_path):
    shutil.copy(FILES / "traps.yaml", tmp_path)
    (tmp_path / "traps.yaml").chmod(0o444)
    tmp_path.chmod(0o555)
    before = os.stat(tmp_path / "traps.yaml")
    rankscope.run("advise", tmp_path / "traps.yaml", check=1)
    after = os.stat(tmp_path / "traps.yaml")
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)
    assert sorted(os.listdir(tmp_path)) == ["traps.yaml"]


def test_it_reads_from_a_pipe(rankscope):
    text = (FILES / "good-1.11.2.yaml").read_text()
    done = subprocess.run(
        [str(rankscope), "advise", "/dev/stdin"], input=text, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
