"""What `gate` writes for a build: JUnit XML and a comment, against a snapshot or another evaluation."""

import json
import re
import unicodedata
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree
from markdown_it import MarkdownIt

from core.api import gate
from core.cli import main
from core.evaluation.release.comment import CUT, LIMIT, code, comment, safe
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import decide
from core.evaluation.release.junit import junit
from core.evaluation.release.measured import of_evaluation
from core.evaluation.release.regressions import Regression, Regressions
from core.evaluation.release.snapshot import compare, read, snapshot
from tests.released import MODES, labelled
from tests.released import of_ranks as made
from tests.runs import HOSTILE

pytestmark = pytest.mark.slow

EASY = Criteria(no_loss=False, max_failed=None, min_questions=5)
ATTACKS = (
    *HOSTILE,
    "@octocat see #1, GH-2, org/repo#3 and `a|b` ``@me``",
    "x\x00\x1b[31m\ud800\ufffe]]>&amp;",
)


def against(before, after, **limits):
    then, now = of_evaluation(before), of_evaluation(after)
    earlier = read(snapshot(then, decide(then, EASY)))
    decision = decide(now, EASY)
    return decision, compare(earlier, now, decision, **limits)


def cases(xml):
    root = etree.fromstring(xml.encode())
    found = {}
    for suite in root.iter("testsuite"):
        inside = suite.findall("testcase")
        bad = [case for case in inside if case.find("failure") is not None]
        assert (int(suite.get("tests")), int(suite.get("failures"))) == (len(inside), len(bad))
        found[suite.get("name")] = {case.get("name"): case.find("failure") for case in inside}
    assert int(root.get("tests")) == sum(map(len, found.values()))
    return found


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """20 questions at rank 1; then q3 is lost, q4 fails, and q5, lost before, is found."""
    home = tmp_path_factory.mktemp("kept")
    before = [None if n == 5 else 1 for n in range(20)]
    after = [None if n == 3 else "failed" if n == 4 else 1 for n in range(20)]
    return made(home / "before", before), made(home / "after", after, why="<b>@me</b>\x07")


def test_a_snapshot_says_which_questions_broke(folders):
    decision, change = against(*folders)
    assert [one.id for one in change.questions.of("broken")] == ["q3", "q4"]
    assert [one.id for one in change.questions.of("fixed")] == ["q5"]
    (lost,) = change.questions.of("broken")[0].lost
    assert (lost.passage, lost.before, lost.after) == ("gold", 1, None)
    assert any("2 questions broke and 1 was fixed, of 20 questions" in note for note in change.notes)
    assert (change.regression, change.too_many_broken) == ("undecided", False)
    _, limited = against(*folders, max_broken=1)
    assert limited.too_many_broken
    assert "2 broke" not in comment(decision, change).partition("\n")[0]
    first = comment(decision, limited).partition("\n")[0]
    assert first.startswith("**Gate failed: 2 questions broke, and at most 1 may.** ")
    note = "All 5 questions were written by m, with their labels; people have accepted none of them."
    assert comment(replace(decision, generated=note)).splitlines()[2] == note
    assert json.loads(json.dumps(limited.document()))["questions"][3]["change"] == "broken"


def test_junit_has_a_test_for_each_criterion_and_each_question(folders):
    decision, change = against(*folders, max_broken=1)
    found = cases(junit(decision, change))
    assert list(found) == ["gate after", "against before"]
    assert {name: case is None for name, case in found["gate after"].items()} == {
        "a route passes": True,
        "bm25: nDCG@10": True,
    }
    tests = found["against before"]
    assert len(tests) == 22
    assert tests["no regression"] is None, "too little is known of a drop, which fails nothing"
    assert tests["q5: question 5"] is None
    assert "At most 1 may break" in tests["at most 1 questions broke"].text
    assert tests["q3: question 3"].text.startswith("gold: rank 1, now not ranked. ")
    strict = decide(of_evaluation(folders[1]), Criteria(minimum=0.99, no_loss=False))
    told = cases(junit(strict))["gate after"]
    assert told["a route passes"].get("message").startswith("Nothing passes")
    assert "required at least 0.99" in told["bm25: nDCG@10, at least 0.99"].text
    assert told["bm25: failed, at most 0%"].text.endswith(" 5%, required at most 0%")


OURS = {"details", "summary", "p", "strong", "ul", "li", "code", "table", "thead", "tbody", "tr", "th", "td"}


def harmless(text):
    """Rendered it has our elements alone, and nothing outside code that GitHub would link."""
    html = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
    assert html.count("<details") == html.count("</details>")
    page = BeautifulSoup(html, "html.parser")
    for one in page.find_all():
        assert one.name in OURS
        assert not one.attrs or (one.name, one.attrs) == ("details", {"open": ""}) or one.name in ("th", "td")
    plain = "".join(one for one in page.strings if one.find_parent("code") is None)
    assert not re.search(r"@\w|(?<!&)#\d|GH-\d|://|www\.\w", plain, re.IGNORECASE)
    return page, plain


@pytest.mark.trust
def test_texts_of_others_stay_text_in_comments_and_xml(tmp_path):
    asked = labelled(len(ATTACKS), texts=ATTACKS, modes=(ATTACKS[0], ATTACKS[3]))
    asked = replace(asked, qrels={one.id: {"gold": 1, ATTACKS[0]: 1} for one in asked.questions})
    count = len(ATTACKS)
    decision, change = against(
        made(tmp_path / "a", [1] * count, asked=asked),
        made(tmp_path / "b", ["failed"] * count, asked=asked, why="<b>@me</b>\x07"),
    )
    page, _ = harmless(comment(decision, change))
    assert len(page.find_all("summary")) == 2
    found = cases(junit(decision, change))["against a"]
    assert len(found) == count + 1
    assert all(unicodedata.category(c) not in ("Cc", "Cf", "Cs") for name in found for c in name)
    assert any("<script>alert(2)</script>" in name for name in found)


@given(st.text(max_size=400))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_any_text_is_text(text):
    plain = harmless(f"- {code(text)}: {safe(text)}\n")[1]
    assert len(code(text)) <= 3 * CUT + 4
    assert len(safe(text, 100)) <= 100
    if text.isalnum() and text.isascii():
        assert text[:100] in plain


@pytest.mark.parametrize("text", ["question", "`" * 300, "@" * 300, "|" * 300, "ж" * 300, "<!--" * 80])
def test_a_comment_is_no_longer_than_github_takes(tmp_path, text):
    count = 400
    asked = labelled(count, texts=[f"{text} {n}" for n in range(count)], modes=(text, *MODES))
    decision, change = against(
        made(tmp_path / "a", [1] * count, asked=asked), made(tmp_path / "b", [None] * count, asked=asked)
    )
    written = comment(decision, change)
    assert len(written) <= LIMIT
    assert written.endswith("\n<!-- routescope gate b -->\n")
    harmless(written)
    listed = written.count("now not ranked")
    assert listed == count or f"- and {count - listed} more\n" in written
    assert "Broken: 400 questions" in written


def test_the_command_writes_both_also_when_it_fails_and_names_what_is_wrong(folders, tmp_path, capsys):
    before, after = (str(one.folder) for one in folders)
    xml, text = tmp_path / "gate.xml", tmp_path / "gate.md"
    files = ("--junit", str(xml), "--markdown", str(text))
    assert main(["gate", after, *files, "--max-failed", "0.1"]) == 1
    assert text.read_text().startswith("**Gate failed: not enough evidence.**")
    assert main(["gate", after, *files, "--max-failed", "0.1", "--min-questions", "19"]) == 0
    assert text.read_text().startswith("**Gate passed.** Ship BM25")
    args = ["gate", after, *files, "--max-failed", "0.1", "--against", before, "--max-broken", "1", "--json"]
    capsys.readouterr()
    assert main(args) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["against"]["questions"][3]["passage"] == "gold"
    assert text.read_text().startswith("**Gate failed: 2 questions broke")
    assert cases(xml.read_text())["against before"]["q3: question 3"] is not None
    assert sorted(one.name for one in tmp_path.iterdir()) == ["gate.md", "gate.xml"]
    # an evaluation in which nothing passes is compared by its nearest route
    assert main(["gate", before, "--against", after]) == 0
    assert main(["gate", after, "--junit", str(tmp_path / "no" / "gate.xml")]) == 2
    assert "cannot be written" in capsys.readouterr().err
    before, after = folders
    for args, said in (
        (
            ("--against", "nope"),
            "--against 'nope' cannot be read: No such file or directory; give a snapshot",
        ),
        (("--against", str(tmp_path)), "contains no evaluation: metrics.json is missing"),
        (("--against", str(before.folder / "metrics.json")), "is not a release snapshot"),
        (("--max-broken", "1"), "--max-broken, --min-effect and --fail-undecided need --against"),
    ):
        assert main(["gate", str(after.folder), *args]) == 2
        told = capsys.readouterr().err
        assert said in told
        assert told.count("\n") == 1


def test_complaints_that_broke_again_fail_the_build_by_name(folders):
    broken = "broken", "gold is not among the first 10"
    results = (
        Regression("c1", "Where is my parcel?", "passed", "it is at rank 2"),
        Regression("c2", "@octocat <b>Who pays?</b>", *broken, ("low",), ("ann",)),
        Regression("c3", "And who else?", "cannot be told", "no answer was written to check"),
    )
    decision = decide(of_evaluation(folders[1]), EASY)
    decision = replace(decision, regressions=Regressions("complaints", "bm25", 10, results))
    tests = cases(junit(decision))["regressions complaints"]
    assert [name for name, failure in tests.items() if failure is not None] == [
        "c2: @octocat <b>Who pays?</b>"
    ]
    assert '<skipped message="c3' in junit(decision)
    written = comment(decision)
    assert written.startswith("**Gate failed: 1 complaint broke again.** ")
    assert "- `c2` `@octocat <b>Who pays?</b>`: gold is not among the first 10\n" in written
    harmless(written)


@pytest.mark.parametrize("earlier", ["before", "snapshot.json"])
def test_a_question_whose_labelled_document_was_deleted_is_broken(tmp_path, earlier):
    before = made(tmp_path / "before", [1] * 30)
    (tmp_path / "snapshot.json").write_text(snapshot(now := of_evaluation(before), decide(now, EASY)))
    without = replace(labelled(30), qrels={f"q{n}": {"gold": 1} for n in range(2, 30)})
    after = made(tmp_path / "after", [None] * 2 + [1] * 28, asked=without, more={"fingerprint": "f2" * 8})

    def broken(*left):
        (after.folder / "documents.json").write_text(json.dumps(dict.fromkeys(left, "hash")))
        found = gate(after, max_failed=None, against=tmp_path / earlier, max_broken=1).against
        labels = [note for note in found.notes if "with changed labels" in note]
        return [one.id for one in found.questions.of("broken")], found.too_many_broken, bool(labels)

    assert broken("other1") == (["q0", "q1"], True, False)
    assert broken("other1", "gold") == ([], False, True)  # the document is there: its labels were taken away
    (after.folder / "documents.json").unlink()
    found = gate(after, max_failed=None, against=tmp_path / earlier, max_broken=1)
    assert (found.against.questions.undetermined, found.against.too_many_broken, found.ok) == (2, True, False)
