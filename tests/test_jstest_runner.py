"""The runner of legacy-shell tests: every way a test can end is reported as itself, and nothing is left running."""

import json
import os
import pathlib
import pty
import re
import resource
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree

import pytest

from conftest import BIN, ROOT

JSTEST = pathlib.Path(os.environ.get("JSTEST", BIN / "jstest"))
CASES = ROOT / "tests" / "jstest_cases"


class Done:
    def __init__(self, code, text, directory):
        self.code = code
        self.text = text
        self.json = directory / "result.json"
        self.junit = directory / "result.xml"

    @property
    def result(self):
        return json.loads(self.json.read_text())

    def by_name(self):
        """The outcomes by file stem, in the order they ended."""
        return {pathlib.Path(t["name"]).stem: t for t in self.result["tests"]}


def environment(directory):
    temporary = directory / "tmp"
    temporary.mkdir(exist_ok=True)
    return {**os.environ, "JSTEST_BIN": str(BIN), "TMPDIR": str(temporary)}


def arguments(directory, *words):
    reports = ["--json", directory / "result.json", "--junit", directory / "result.xml", "--root", CASES]
    return [str(word) for word in [JSTEST, *reports, *words]]


@pytest.fixture
def jstest(workdir):
    """Runs the runner on cases; whatever it leaves running or lying about in TMPDIR fails the test."""

    def run(*words, seconds=120):
        done = subprocess.run(
            arguments(workdir, *words), env=environment(workdir), cwd=workdir, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds,
        )
        assert_nothing_left(workdir)
        return Done(done.returncode, done.stdout.decode(), workdir)

    return run


def processes_of(directory):
    """Processes that name the run's TMPDIR in their environment or arguments: all that any test of it has started."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environ, command = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if str(directory / "tmp").encode() in environ + command and command:
            found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return found


def assert_nothing_left(directory):
    assert processes_of(directory) == []
    left = [p.name for p in (directory / "tmp").rglob("*") if p.is_file()]
    # Only the output of failures is kept.
    assert [name for name in left if not name.endswith(".txt")] == []


def test_every_end_is_reported_as_itself(jstest):
    names = ["passes", "throws", "quits", "syntax_error", "leaves_a_process", "prints_binary", "crashes",
             "needs_missing_native", "has_a_broken_header", "wants_shards"]
    done = jstest("--fixture", "standalone", "--jobs", 2, *[f"{n}.js" for n in names])
    assert done.code == 1, done.text
    tests = done.by_name()
    assert {n: t["status"] for n, t in tests.items()} == {
        "passes": "pass", "throws": "fail", "quits": "fail", "syntax_error": "fail", "leaves_a_process": "leak",
        "prints_binary": "fail", "crashes": "crash", "needs_missing_native": "missing-native",
        "has_a_broken_header": "fail", "wants_shards": "skip",
    }, done.text
    assert "thrown on purpose" in tests["throws"]["reason"]
    assert "before the exception" in tests["throws"]["tail"]
    assert "exit code 7" in tests["quits"]["reason"]
    assert "SIGABRT" in tests["crashes"]["reason"]
    assert "sleep 300" in tests["leaves_a_process"]["left_running"][0]
    assert "requires_sharding" in tests["wants_shards"]["reason"]
    assert "not closed" in tests["has_a_broken_header"]["reason"]
    assert tests["needs_missing_native"]["missing_natives"] == ["_createTenantToken"]
    assert done.result["missing_natives"] == {"_createTenantToken": 1}
    assert "missing native _createTenantToken: 1 test" in done.text
    assert tests["prints_binary"]["binary_output"] is True
    assert "\\u{0}\\u{1b}[31mred" in tests["prints_binary"]["tail"] and "\x1b" not in done.text
    assert "1 passed, 8 failed, 1 skipped" in done.text
    # The kept output is whole, bytes as they were.
    assert b"\x00\x1b[31mred" in pathlib.Path(tests["prints_binary"]["output"]).read_bytes()


def test_junit_is_xml_with_a_case_a_test(jstest):
    done = jstest("--fixture", "none", *[f"{n}.js" for n in ["passes", "throws", "prints_binary", "crashes"]])
    root = ElementTree.parse(done.junit).getroot()
    cases = {case.get("name"): case for case in root.iter("testcase")}
    assert len(cases) == 4
    assert list(cases["passes.js"]) == []
    assert "thrown on purpose" in cases["throws.js"].find("failure").get("message")
    assert cases["crashes.js"].find("error").get("type") == "crash"
    suite = root.find("testsuite")
    assert (suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("none", "4", "2", "1")


def test_a_hang_on_the_fixture_is_dumped_and_ended(jstest):
    done = jstest("--fixture", "sharded", "--jobs", 1, "--timeout", 3, "hangs_on_fixture.js", "passes.js")
    assert done.code == 1
    tests = done.by_name()
    hung = tests["hangs_on_fixture"]
    assert hung["status"] == "timeout" and 3 <= hung["seconds"] < 10
    assert "the query is under way" in hung["tail"]
    # The router and both shards and the config server are asked.
    assert hung["tail"].count("currentOp of ") == 4, hung["tail"]
    assert "held on purpose" in hung["tail"]
    assert "last lines of" in hung["tail"]
    assert hung["fixture_replaced"] == "the test hung"
    assert tests["passes"]["status"] == "pass"


def test_a_hang_on_servers_of_its_own_is_dumped_and_ended(jstest):
    done = jstest("--fixture", "none", "--timeout", 5, "hangs_on_own_server.js")
    hung = done.by_name()["hangs_on_own_server"]
    assert hung["status"] == "timeout", done.text
    assert "held on purpose" in hung["tail"], hung["tail"]


def test_an_endless_loop_is_ended(jstest):
    done = jstest("--fixture", "none", "--timeout", 1, "hangs_in_a_loop.js")
    assert done.by_name()["hangs_in_a_loop"]["status"] == "timeout"


def test_a_server_left_running_is_not_left(jstest):
    done = jstest("--fixture", "none", "leaves_a_server.js")
    left = done.by_name()["leaves_a_server"]
    # A library may itself refuse to end with servers running: then the test fails, but the server is gone all the same.
    assert left["status"] in ("leak", "fail"), done.text
    assert done.code == 1


def test_the_fixture_is_clean_for_the_next_test(jstest):
    for fixture in ["standalone", "set", "sharded"]:
        done = jstest("--fixture", fixture, "--jobs", 1, "changes_the_fixture.js", "finds_a_clean_fixture.js")
        assert done.code == 0, done.text
        # The level is the top of this tree, and the first parameter that differs.
        assert "logComponentVerbosity" in done.by_name()["changes_the_fixture"]["fixture_replaced"]


def test_a_fixture_that_dies_is_the_fault_of_the_test_and_replaced(jstest):
    done = jstest("--fixture", "standalone", "--jobs", 1, "kills_the_fixture.js", "finds_a_clean_fixture.js")
    tests = done.by_name()
    assert tests["finds_a_clean_fixture"]["status"] == "pass"
    assert tests["kills_the_fixture"]["status"] != "pass"
    assert "servers ended" in tests["kills_the_fixture"]["reason"]


def test_tests_at_once_have_ports_and_directories_apart(jstest, workdir):
    out = workdir / "out"
    out.mkdir()
    suite = workdir / "apart.yml"
    copies = [workdir / f"place{i}.js" for i in range(4)]
    for copy in copies:
        copy.write_text((CASES / "tells_its_place.js").read_text())
    suite.write_text(json.dumps({"fixture": "none", "files": [str(c) for c in copies],
                                 "shell": {"test_data": {"out": str(out)}}}))
    done = jstest("--suite", suite, "--jobs", 2)
    assert done.code == 0, done.text
    places = [json.loads(p.read_text()) for p in out.iterdir()]
    assert len({p["data"] for p in places}) == 4
    at_once = [(a, b) for a in places for b in places
               if a is not b and a["begun"] < b["ended"] and b["begun"] < a["ended"]]
    assert at_once, "no two tests ran at the same time"
    for a, b in at_once:
        (a_low, a_high), (b_low, b_high) = (map(int, p["ports"].split("-")) for p in (a, b))
        assert a_high < b_low or b_high < a_low
    assert not any(pathlib.Path(p["data"]).exists() for p in places)


def test_interrupted_it_ends_everything_and_says_so(workdir):
    words = ["--fixture", "none", "--jobs", 2, "hangs_on_own_server.js", "hangs_in_a_loop.js", "passes.js"]
    child = subprocess.Popen(arguments(workdir, *words), env=environment(workdir), stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not any("mongod" in c and "--port" in c for c in processes_of(workdir)):
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    text = child.communicate(timeout=20)[0].decode()
    assert child.returncode == 130, text
    assert "interrupted: 1 tests did not run" in text
    assert_nothing_left(workdir)
    result = json.loads((workdir / "result.json").read_text())
    assert result["not_run"] == 1
    assert {t["reason"] for t in result["tests"]} == {"interrupted"}


def test_exit_codes(jstest, workdir):
    assert jstest("--fixture", "none", "passes.js").code == 0
    assert jstest("--fixture", "none", "throws.js").code == 1
    for wrong in [["--fixture", "cluster", "passes.js"], ["nowhere.js"], ["@nowhere"], [], ["--jobs", "0", "passes.js"],
                  ["--suite", "nowhere.yml"], ["--shell-lib", "nowhere", "passes.js"], ["--no-such-option"]]:
        done = jstest(*wrong)
        assert done.code == 2, (wrong, done.text)
        assert done.text.strip(), wrong
    assert jstest("--fixture", "none", "nowhere*.js").code == 3
    assert jstest("--fixture", "none", "--include-tags", "no_such_tag", "passes.js").code == 3
    # Only skipped tests are no success either.
    assert jstest("--fixture", "standalone", "wants_shards.js").code == 3
    done = subprocess.run([JSTEST, "--json", workdir / "no" / "dir.json", CASES / "passes.js"], env=environment(workdir),
                          capture_output=True, timeout=60)
    assert done.returncode == 2 and b"dir.json" in done.stderr


def test_lists_globs_and_tags_select(jstest, workdir):
    (workdir / "list").write_text("# a list\npasses.js  # the first\n\nwants_*.js\n")
    done = jstest("--fixture", "none,sharded", "--exclude-tags", "slow_by_tag", f"@{workdir}/list")
    statuses = sorted((t["name"], t["fixture"], t["status"]) for t in done.result["tests"])
    assert statuses == [
        ("passes.js", "none", "pass"), ("passes.js", "sharded", "pass"),
        ("wants_shards.js", "none", "skip"), ("wants_shards.js", "sharded", "skip"),
    ], done.text
    # Without a fixture each test gets the smallest that its tags allow.
    done = jstest("passes.js", "wants_shards.js", "leaves_a_server.js")
    assert {n: t["fixture"] for n, t in done.by_name().items()} == {
        "passes": "standalone", "wants_shards": "sharded", "leaves_a_server": "none"}
    assert done.by_name()["wants_shards"]["status"] == "pass"


def test_a_suite_excludes_with_reasons_and_prepares_the_shell(jstest, workdir):
    suite = workdir / "some.yml"
    suite.write_text(
        "fixture: none\n"
        "files: [knows_its_name.js, throws.js]\n"
        "exclude:\n"
        "  - files: throws.js\n"
        "    reason: it throws\n"
        "shell:\n"
        "  eval: var saidByTheSuite = 'evaluated';\n"
        "  test_data: {answer: 42}\n"
    )
    done = jstest("--suite", suite)
    assert done.code == 0, done.text
    tests = done.by_name()
    assert tests["knows_its_name"]["suite"] == "some"
    assert (tests["throws"]["status"], tests["throws"]["reason"]) == ("skip", "it throws")
    assert "skipped    1  it throws" in done.text
    suite.write_text("fixture: none\nfiles: [passes.js]\nexclude: [{files: throws.js}]\n")
    done = jstest("--suite", suite)
    assert done.code == 2 and "reason" in done.text


def test_implicit_sharding(jstest, workdir):
    assert jstest("--fixture", "sharded", "is_sharded_behind_its_back.js").code == 1
    suite = workdir / "passthrough.yml"
    suite.write_text("fixture: sharded\nfiles: is_sharded_behind_its_back.js\npassthrough: [shard_collections]\n")
    done = jstest("--suite", suite)
    assert done.code == 0, done.text


def test_a_terminal_gets_a_bar(workdir):
    master, terminal = pty.openpty()
    child = subprocess.Popen(arguments(workdir, "--fixture", "none", "passes.js", "throws.js"), stdout=terminal,
                             stderr=terminal, stdin=subprocess.DEVNULL, env=environment(workdir))
    os.close(terminal)
    text = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:
            break
        if not chunk:
            break
        text += chunk
    assert child.wait(60) == 1
    assert re.search(rb"\r\x1b\[K\[#+-*\] 1/2 ", text), text
    assert b"thrown on purpose" in text


def test_it_starts_at_once():
    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def best(*words):
        # What other processes take away from it is not its own.
        times = []
        for _ in range(7):
            before = spent()
            subprocess.run([JSTEST, *words], check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            times.append(spent() - before)
        return min(times)

    assert best("--help") < 0.1
    assert best("shell", "--nodb", "--eval", "1") < 0.1
