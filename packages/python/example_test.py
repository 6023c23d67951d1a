"""What the package is for; `tools/package test` runs it where the package is installed."""

import pathlib
import stat
import subprocess
import sys
import time

import pymongo
import pytest

import tessera_db


@pytest.fixture(scope="session")
def tessera_data(tessera_cluster):
    with pymongo.MongoClient(tessera_cluster.uri) as client:
        client.d.c.insert_many([{"_id": i} for i in range(10)])


@pytest.mark.parametrize("n", range(3))
def test_each_test_finds_the_same_data(tessera_uri, n):
    with pymongo.MongoClient(tessera_uri) as client:
        assert client.d.c.count_documents({}) == 10
        client.d.c.delete_many({})
        client.d.made.insert_one({"n": n})


def test_a_cluster_of_its_own():
    with tessera_db.start(shards=2) as cluster, pymongo.MongoClient(cluster.uri) as client:
        client.d.c.insert_one({"_id": 1})
        assert len(cluster.info["shards"]) == 2


def test_an_option_that_is_none():
    with pytest.raises(RuntimeError, match="exit code 2"):
        tessera_db.start(nosuch=1)


def test_what_servers_complain_of_holds_nothing_up(tmp_path, monkeypatch):
    program, written = tmp_path / "tessera", tmp_path / "written"
    program.write_text(f"""#!{sys.executable}
import pathlib, sys, time
print('{{"uri": "mongodb://h/"}}', flush=True)
for out in (sys.stdout, sys.stderr):
    out.write("x" * 1_000_000)
    out.flush()
pathlib.Path({str(written)!r}).touch()
time.sleep(600)
""")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(tessera_db, "BINARY", str(program))
    with tessera_db.start():
        deadline = time.monotonic() + 30
        while not written.exists():
            assert time.monotonic() < deadline, "it waits for somebody to read what it wrote"
            time.sleep(0.01)


def test_a_cluster_ends_with_the_program_that_started_it():
    code = "import tessera_db; print(tessera_db.start(replset='rs0')._child.pid)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as started:
        pid = int(started.stdout.readline())
        assert started.wait(timeout=60) == 0
    assert not pathlib.Path(f"/proc/{pid}").exists()
