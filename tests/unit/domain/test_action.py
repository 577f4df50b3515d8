"""The GitHub Action: its steps run here as they are written, on a change that breaks a question."""

import json
import os
import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest
import yaml

from core.domain.program import PROJECT

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.timeout(600)]

ACTION = yaml.safe_load((PROJECT / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")

# The command line of GitHub, over a file of comments; the comment of a person quotes the marker.
GH = """
import json, os, pathlib, sys
if os.environ["GH_TOKEN"] != "the job's token":
    sys.exit("HTTP 403: Resource not accessible by integration")
store = pathlib.Path(os.environ["COMMENTS"])
comments = json.loads(store.read_text())
args = sys.argv[1:]
assert args.pop(0) == "api"
named = dict(zip(args, args[1:]))
if "--jq" in args:
    assert named["--paginate"] == "repos/me/docs/issues/7/comments?per_page=100"
    assert named["--jq"] == (
        '.[] | select(.user.type == "Bot" and (.body | contains(env.MARKER))) | .id')
    marker = os.environ["MARKER"]
    print("\\n".join(str(one["id"]) for one in comments if one["bot"] and marker in one["body"]))
    sys.exit()
field, _, file = named["-F"].partition("=@")
assert field == "body"
body = pathlib.Path(file).read_text()
path = named[named["--method"]]
if named["--method"] == "POST":
    assert path == "repos/me/docs/issues/7/comments"
    comments.append({{"id": 100 + len(comments), "bot": True, "body": body}})
else:
    assert named["--method"] == "PATCH"
    (one,) = [one for one in comments if path == f"repos/me/docs/issues/comments/{{one['id']}}"]
    one["body"] = body
store.write_text(json.dumps(comments))
"""


class Job:
    """A job of a build: the files of its runner, and its pull request."""

    def __init__(self, folder):
        self.folder, self.temp = folder, folder / "temp"
        (self.temp / "routescope" / "bin").mkdir(parents=True)
        self._script(
            self.temp / "routescope" / "bin" / "routescope",
            f'#!/bin/sh\nPYTHONPATH="{PROJECT}" exec "{sys.executable}" -m core "$@"\n',
        )
        (folder / "bin").mkdir()
        (folder / "gh.py").write_text(GH.format())
        self._script(folder / "bin" / "gh", f'#!/bin/sh\nexec "{sys.executable}" "{folder}/gh.py" "$@"\n')
        self.comments = folder / "comments.json"
        self.comments.write_text(
            json.dumps([{"id": 5, "bot": False, "body": "why?\n> <!-- routescope gate gate -->"}])
        )
        self.summary, self.output = folder / "summary.md", folder / "output"

    @staticmethod
    def _script(path, text):
        path.write_text(text)
        path.chmod(0o755)

    def run(self, *, event=True, token="the job's token", skip=("install",), **inputs):
        """The exit code of the job and what its steps said: as with a runner, none after a failed one."""
        known = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
        assert not set(inputs) - set(known)
        values = {f"inputs.{name}": value for name, value in {**known, **inputs}.items()}
        values |= {
            "runner.temp": str(self.temp),
            "github.action_path": str(PROJECT),
            "github.token": token,
            "github.repository": "me/docs",
            "github.event.pull_request.number": "7" if event else "",
        }
        said = ""
        for step in STEPS:
            if "run" not in step or step["id"] in skip or not self._wanted(step, values):
                continue
            self.output.write_text("")
            environment = {
                name: EXPRESSION.sub(lambda found: values[found[1]], value)
                for name, value in step.get("env", {}).items()
            }
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.folder,
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
                env={
                    "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
                    "HOME": str(self.folder),
                    "GITHUB_OUTPUT": str(self.output),
                    "GITHUB_STEP_SUMMARY": str(self.summary),
                    "COMMENTS": str(self.comments),
                    **environment,
                },
            )
            said += done.stdout + done.stderr
            for line in self.output.read_text().splitlines():
                name, _, value = line.partition("=")
                values[f"steps.{step['id']}.outputs.{name}"] = value
            if done.returncode:
                return done.returncode, said
        return 0, said

    @staticmethod
    def _wanted(step, values):
        if "if" not in step:
            return True
        assert step["if"] == "inputs.comment == 'true' && github.event.pull_request.number != ''"
        return values["inputs.comment"] == "true" and values["github.event.pull_request.number"] != ""

    def bots(self):
        return [one["body"] for one in json.loads(self.comments.read_text()) if one["bot"]]

    def file(self, name):
        return self.temp / "routescope-gate" / name


THINGS = "parcel invoice warranty voucher pallet customs courier refund battery stamp"


def write_set(folder, more=()):
    """A BEIR folder: a document on each thing, and a question on each."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    things = list(enumerate(THINGS.split()))
    documents = [
        (f"d{n}", f"The {thing} is handled at desk {n} by the team of floor {n}.") for n, thing in things
    ]
    lines = [json.dumps({"_id": id, "title": "", "text": text}) for id, text in (*documents, *more)]
    asked = [json.dumps({"_id": f"q{n}", "text": f"Who handles a {thing}, @octocat?"}) for n, thing in things]
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    (folder / "queries.jsonl").write_text("\n".join(asked))
    judged = "".join(f"q{n}\td{n}\t1\n" for n, _ in things)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A job on the main branch, whose snapshot is kept, and one on a change that buries the voucher."""
    folder = tmp_path_factory.mktemp("job")
    job = Job(folder)
    write_set(folder / "docs")
    first = job.run(set="docs", routes="bm25", criteria="--min-questions 10", event=False)
    (folder / "release.json").write_bytes(job.file("snapshot.json").read_bytes())
    before = job.bots(), job.file("comment.md").read_text()
    write_set(
        folder / "docs", [(f"n{n}", f"A voucher is handled: voucher news {n}, voucher.") for n in range(12)]
    )
    changed = {
        "set": "docs",
        "routes": "bm25",
        "against": "release.json",
        "eval": "--timing isolated",
        "criteria": "--max-broken 0 --min-quality 0.5",
    }
    return job, first, before, job.run(**changed), changed


def test_a_change_that_breaks_a_question_fails_and_says_which(built):
    job, first, (none, passed), (code, said), _ = built
    assert first[0] == 0, first[1]
    assert none == []
    assert passed.startswith("**Gate passed.** Ship BM25")
    assert code == 1, said
    (comment,) = job.bots()
    assert comment == job.file("comment.md").read_text()
    assert comment.startswith("**Gate failed: 1 question broke, and at most 0 may.** ")
    assert "`q3` `Who handles a voucher, @octocat?`: `d3" in comment
    assert re.search(r"rank 1, now rank 13; found too low \(search BM25\)", comment)
    assert comment.endswith("<!-- routescope gate gate -->\n")
    assert comment in job.summary.read_text()
    (broken,) = [
        one for one in ET.parse(job.file("junit.xml")).iter("testcase") if one.get("name").startswith("q3:")
    ]
    assert broken.find("failure").text.endswith("Step: search BM25.")
    decision = json.loads(job.file("decision.json").read_text())
    assert [one["question"] for one in decision["against"]["questions"] if one["change"] == "broken"] == [
        "q3"
    ]


def test_the_same_comment_is_written_again_and_that_of_a_person_is_left(built):
    job, _, _, _, changed = built
    assert job.run(**{**changed, "criteria": "--max-broken 1"})[0] == 0
    (comment,) = job.bots()
    assert comment.startswith("**Gate passed.**")
    assert json.loads(job.comments.read_text())[0]["body"].startswith("why?")


def test_a_token_that_may_only_read_changes_nothing_of_the_decision(built):
    job, _, _, _, changed = built
    code, said = job.run(**changed, token="that of a fork")
    assert code == 1
    assert "::warning::The comment could not be posted" in said


def test_values_of_a_workflow_are_no_code_and_a_wrong_one_ends_the_job(built):
    job, _, _, _, changed = built
    attack = "$(touch pwned); touch pwned `touch pwned` * "
    names = ("set", "routes", "eval", "against", "criteria", "id")
    for some in (names, names[3:]):
        code, said = job.run(**{**changed, **dict.fromkeys(some, attack)})
        assert code == 2, said
    assert not list(job.folder.rglob("pwned"))


def test_what_is_installed_is_this_commit_in_an_environment_of_its_own(tmp_path):
    shim = tmp_path / "bin" / "python"
    shim.parent.mkdir()
    # `python -m venv FOLDER` makes this program the environment's, too; all it does is write what it is asked
    shim.write_text(
        '#!/bin/bash\nprintf "%s|" "$@" >> "$LOG"; echo >> "$LOG"\n'
        'if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi\n'
    )
    shim.chmod(0o755)
    step = next(step for step in STEPS if step.get("id") == "install")
    subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        check=True,
        env={
            "PATH": f"{shim.parent}:{os.environ['PATH']}",
            "LOG": str(tmp_path / "log"),
            "TEMP": str(tmp_path),
            "ACTION": "/the/action",
            "PIP_ARGS": "--extra-index-url https://example.org/cpu",
        },
    )
    assert (tmp_path / "log").read_text().splitlines() == [
        f"-m|venv|{tmp_path}/routescope|",
        "-m|pip|install|--quiet|--extra-index-url|https://example.org/cpu|/the/action|",
    ]


def test_actions_of_others_are_pinned_and_no_expression_stands_in_a_script():
    ci = (PROJECT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    for step in STEPS:
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"])
            if "setup-python" in step["uses"]:
                assert step["uses"] in ci
        else:
            assert step["shell"] == "bash"
            assert "${{" not in step["run"]
