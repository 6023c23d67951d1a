"""What `tessera` offers a person: an options file, TLS, copies and snapshots of a running server, completions."""

import json
import subprocess

import pymongo
from conftest import BIN


def tessera(*argv):
    """The exit code and the output of a command that ends by itself."""
    done = subprocess.run([BIN / "tessera", *map(str, argv)], capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout + done.stderr


def test_snapshots_put_a_cluster_back_over_a_kill(up, tmp_path):
    """All shards and the catalog, from the command line; what a restart finds is what was put back."""
    def start():
        return up("--shards", "2", "--dbpath", str(tmp_path / "data"))

    cluster = start()
    uri = cluster.uri
    client = pymongo.MongoClient(uri)
    client.admin.command("shardCollection", "d.c", key={"_id": "hashed"})
    client.d.c.insert_many([{"_id": i} for i in range(100)])
    code, text = tessera("fork", "d", "e", "--uri", uri)
    assert code == 0 and "e is a copy of d: 1 collections" in text, text
    assert tessera("snapshot", "base", "--uri", uri)[0] == 0
    client.d.c.delete_many({"_id": {"$lt": 50}})
    client.drop_database("e")
    client.since.c.insert_one({})
    code, text = tessera("restore", "base", "--uri", uri)
    assert code == 0 and "restored snapshot base: 2 collections" in text, text
    cluster.kill()
    cluster = start()
    client = pymongo.MongoClient(cluster.uri)
    assert [client[name].c.count_documents({}) for name in ("d", "e", "since")] == [100, 100, 0]
    assert sorted(d["_id"] for d in client.d.c.find()) == list(range(100))
    client.d.c.insert_one({"_id": "after"})
    assert tessera("restore", "base", "--uri", cluster.uri)[0] == 0
    assert client.d.c.find_one({"_id": "after"}) is None


def test_snapshots_put_a_set_back_and_databases_are_copied(up):
    cluster = up("--replset", "rs0", "--auth")
    uri = cluster.uri
    client = pymongo.MongoClient(uri)
    client.d.c.insert_many([{"_id": i} for i in range(100)])
    assert tessera("snapshot", "base", "--uri", uri)[0] == 0
    client.d.c.delete_many({})
    client.other.c.insert_one({})
    code, text = tessera("restore", "base", "--uri", uri)
    assert code == 0 and "restored snapshot base: 1 collections" in text
    assert client.d.c.count_documents({}) == 100 and "other" not in client.list_database_names()
    assert tessera("fork", "d", "e", "--uri", uri)[0] == 0
    assert client.e.c.count_documents({}) == 100
    code, text = tessera("fork", "d", "e", "--uri", uri)
    assert code == 1 and "exists already" in text
    assert tessera("fork", "d", "e", "--replace", "--uri", uri)[0] == 0
    assert tessera("snapshots", "--uri", uri)[1].split()[:2] == ["base", "1"]
    assert tessera("snapshot", "base", "--drop", "--uri", uri)[0] == 0
    code, text = tessera("restore", "base", "--uri", uri)
    assert code == 1 and "snapshot base not found" in text
    code, text = tessera("restore", "base", "--uri", uri.replace("admin:", "admin:x"))
    assert code == 1 and "Authentication failed" in text
    client.close()


def test_a_cluster_speaks_tls_with_a_certificate_of_its_own(up, workdir):
    cluster = up("--tls", "--auth", "--shards", "1", "--dbpath", workdir / "here & there, 100%")
    assert "tls=true" in cluster.uri and "tlsCAFile=" in cluster.uri
    with pymongo.MongoClient(cluster.uri, serverSelectionTimeoutMS=20000) as client:
        client.d.c.insert_one({"_id": 1})
        assert client.d.c.find_one() == {"_id": 1}
        client.d.c.insert_one({"_id": 2})
    code, text = tessera("snapshot", "two", "--uri", cluster.uri)
    assert (code, text.startswith("took snapshot two: ")) == (0, True), text
    code, text = tessera("status", cluster.uri, "--json")
    view = json.loads(text)
    assert (code, view["kind"], view["shards"][0]["members"][0]["state"]) == (0, "sharded", "primary"), text
    plain = cluster.uri.split("/?")[0] + "/"
    with pymongo.MongoClient(plain, serverSelectionTimeoutMS=500) as client:
        try:
            client.admin.command("ping")
            raise AssertionError("a connection in the clear")
        except pymongo.errors.ServerSelectionTimeoutError:
            pass


def test_options_come_from_a_file_and_the_command_line_counts(up, workdir):
    file = workdir / "up.yml"
    file.write_text("replset: fromfile\nset-parameter:\n  ttlMonitorSleepSecs: 7\n")
    cluster = up("--config", file, "--replset", "given")
    with pymongo.MongoClient(cluster.uri) as client:
        assert client.admin.command("hello")["setName"] == "given"
        assert client.admin.command("getParameter", ttlMonitorSleepSecs=1)["ttlMonitorSleepSecs"] == 7
    file.write_text("shard: 3\n")
    code, text = tessera("up", "--config", file)
    assert code == 2 and "--shard" in text and str(file) in text
    # Names of files need not be text.
    done = subprocess.run([BIN / "tessera", "up", "--config", b"none\xff.yml"], capture_output=True, timeout=30)
    assert done.returncode == 2 and b"cannot read" in done.stderr


def test_completions_and_help_are_for_people():
    for shell in ("bash", "zsh", "fish"):
        code, text = tessera("completions", shell)
        assert code == 0 and "snapshot" in text
    code, text = tessera("--help")
    assert code == 0 and "\x1b" not in text
    for command in ("up", "fork", "snapshot", "snapshots", "restore", "completions"):
        assert command in text


def test_the_config_server_is_a_shard_too(up, workdir):
    for _ in range(2):
        cluster = up("--config-shard", "--shards", "1", "--dbpath", workdir / "data")
        assert [shard["id"] for shard in cluster.info["shards"]] == ["config", "shard0"]
        with pymongo.MongoClient(cluster.uri) as client:
            assert sorted(d["_id"] for d in client.config.shards.find()) == ["config", "shard0"]
            client.admin.command("enableSharding", "d", primaryShard="config")
            client.d.c.replace_one({"_id": 1}, {}, upsert=True)
            with pymongo.MongoClient(cluster.info["shards"][0]["uri"], directConnection=True) as direct:
                assert direct.d.c.find_one() == {"_id": 1}
        cluster.stop()
