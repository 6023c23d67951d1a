"""MongoDB's own tools against a standalone, a set and a cluster: what they dump, export and store comes back as it was.

They are looked for in the folder that TESSERA_MONGO_TOOLS names and on the path; no registry has them, so the tests say
`not run: no mongodump` where they are missing.
"""

import json
import os
import shutil
import subprocess

import bson
import gridfs
import pymongo
import pytest
from test_copy import fill, same

SHAPES = {"standalone": ("--standalone",), "set": ("--replset", "rs0"), "cluster": ("--shards", 2)}


@pytest.fixture
def tool(workdir):
    """Runs a tool, which must succeed, and returns what it printed, as (stdout, stderr)."""
    path = os.pathsep.join([os.environ.get("TESSERA_MONGO_TOOLS", ""), os.environ["PATH"]])

    def run(name, server, *options, stdin=None, binary=False):
        program = shutil.which(name, path=path)
        address = ["--uri", server.uri] if server else []
        done = subprocess.run([program, *address, *map(str, options)], input=stdin, capture_output=True, timeout=120, cwd=workdir)
        assert done.returncode == 0, (name, options, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout if binary else done.stdout.decode(), done.stderr.decode()

    if not shutil.which("mongodump", path=path):
        pytest.skip("not run: no mongodump")
    return run


@pytest.fixture(params=SHAPES)
def pair(request, up):
    """Two servers of one shape: where data is, and where it is put."""
    return up(*SHAPES[request.param]), up(*SHAPES[request.param])


@pytest.mark.parametrize("form", [("--out", "dump"), ("--gzip", "--archive=dump.gz")])
def test_what_was_dumped_is_restored_with_its_options_and_indexes(pair, tool, form):
    source, target = pair
    here, there = source.client(), target.client()
    fill(here)
    here.a.create_collection("series", timeseries={"timeField": "t", "metaField": "m"})
    tool("mongodump", source, *form)
    there.a.plain.insert_one({"_id": "is dropped"})
    restored = ["--dir", "dump"] if form[0] == "--out" else form
    # A cluster takes no whole dump: its database `config` is its own.
    tool("mongorestore", target, "--drop", "--nsInclude", "a.*", "--nsInclude", "b.*", *restored)
    assert same(here, there) == ""


def test_a_part_is_dumped_and_restored_under_another_name(pair, tool):
    source, target = pair
    source.client().a.c.insert_many({"_id": i, "even": i % 2 == 0} for i in range(100))
    archive, _ = tool("mongodump", source, "--db", "a", "--collection", "c", "--query", '{"even": true}', "--archive", binary=True)
    tool("mongorestore", target, "--archive", "--nsFrom", "a.*", "--nsTo", "b.*", stdin=archive)
    assert sorted(d["_id"] for d in target.client().b.c.find()) == list(range(0, 100, 2))


def test_a_dump_with_the_oplog_ends_at_one_moment(up, tool, workdir):
    source, target = up("--replset", "rs0"), up("--replset", "rs0")
    here, there = source.client(), target.client()
    fill(here)
    with here.start_session() as session, session.start_transaction():
        here.a.plain.insert_one({"_id": "of a transaction"}, session=session)
    tool("mongodump", source, "--oplog", "--out", "dump")
    # As if it had been written while the dump was made.
    oplog = here.local["oplog.rs"]
    before = oplog.find().sort("$natural", -1).limit(1)[0]["ts"]
    here.a.plain.update_one({"_id": 1}, {"$set": {"late": True}})
    with here.start_session() as session, session.start_transaction():
        here.a.plain.insert_one({"_id": "late"}, session=session)
        here.a.plain.delete_one({"_id": 2}, session=session)
    here.a.late.insert_one({"_id": 1})
    here.a.late.create_index("x")
    late = list(oplog.find({"ts": {"$gt": before}, "op": {"$ne": "n"}}).sort("$natural", 1))
    with open(workdir / "dump" / "oplog.bson", "ab") as file:
        file.writelines(bson.encode(entry) for entry in late)
    tool("mongorestore", target, "--oplogReplay", "dump")
    assert same(here, there) == ""


def test_users_and_roles_are_dumped_and_restored(up, tool):
    source, target = up("--replset", "rs0", "--auth"), up("--replset", "rs0", "--auth")
    here = source.client()
    here.a.command("createRole", "reader", privileges=[{"resource": {"db": "a", "collection": "c"}, "actions": ["find"]}], roles=[])
    here.a.command("createUser", "ann", pwd="secret", roles=["reader"])
    here.a.c.insert_one({"_id": 1})
    login = "--authenticationDatabase", "admin"
    tool("mongodump", source, *login, "--db", "a", "--dumpDbUsersAndRoles", "--out", "dump")
    tool("mongorestore", target, *login, "--db", "a", "--restoreDbUsersAndRoles", "dump/a")
    address = target.uri.split("@")[-1].split("/")[0]
    with pymongo.MongoClient(f"mongodb://ann:secret@{address}/?authSource=a&directConnection=true") as ann:
        assert ann.a.c.find_one() == {"_id": 1}


def test_what_was_exported_is_imported(pair, tool):
    source, target = pair
    here, there = source.client(), target.client()
    documents = [{"_id": i, "name": f"n,{i}", "at": bson.datetime_ms.DatetimeMS(i), "of": {"x": i / 4}} for i in range(50)]
    here.a.c.insert_many(documents)
    lines, _ = tool("mongoexport", source, "--db", "a", "--collection", "c", "--jsonFormat", "canonical")
    tool("mongoimport", target, "--db", "a", "--collection", "c", stdin=lines.encode())
    assert list(there.a.c.find().sort("_id")) == list(here.a.c.find().sort("_id"))
    table, _ = tool("mongoexport", source, "--db", "a", "--collection", "c", "--type", "csv", "--fields", "_id,name,of.x", "--query", '{"_id": {"$lt": 3}}')
    assert table.splitlines() == ["_id,name,of.x", '0,"n,0",0', '1,"n,1",0.25', '2,"n,2",0.5']
    tool("mongoimport", target, "--db", "a", "--collection", "c", "--type", "csv", "--headerline", "--mode", "merge", stdin=b"_id,name\n1,other\n99,new\n")
    assert there.a.c.find_one({"_id": 1})["name"] == "other" and there.a.c.find_one({"_id": 1})["of"] == {"x": 0.25}
    assert there.a.c.count_documents({}) == 51
    tool("mongoimport", target, "--db", "a", "--collection", "d", "--jsonArray", "--drop", stdin=b'[{"_id": {"$numberLong": "5"}}]')
    assert there.a.d.find_one() == {"_id": 5}


def test_files_are_put_and_got(pair, tool, workdir):
    server, _ = pair
    content = os.urandom(600_000)
    (workdir / "file").write_bytes(content)
    tool("mongofiles", server, "--db", "files", "put", "file")
    assert gridfs.GridFS(server.client().files).get_last_version("file").read() == content
    tool("mongofiles", server, "--db", "files", "get", "file", "--local", "back")
    assert (workdir / "back").read_bytes() == content
    assert "file\t600000" in tool("mongofiles", server, "--db", "files", "list")[0]
    tool("mongofiles", server, "--db", "files", "delete", "file")
    assert server.client().files["fs.chunks"].count_documents({}) == 0


def test_numbers_are_shown(pair, tool, workdir):
    server, _ = pair
    server.client().a.c.insert_one({"_id": 1})
    shown = json.loads(tool("mongostat", server, "--rowcount", 1, "--json")[0].splitlines()[0])
    assert all({"insert", "query", "conn", "vsize"} <= row.keys() for row in shown.values()), shown
    if not server.info.get("routers"):
        totals = json.loads(tool("mongotop", server, "--rowcount", 1, "--json", 1)[0])["totals"]
        assert "a.c" in totals, totals
    (workdir / "one.bson").write_bytes(bson.encode({"_id": 1, "x": bson.Int64(5)}))
    assert json.loads(tool("bsondump", None, "--quiet", "one.bson")[0]) == {"_id": {"$numberInt": "1"}, "x": {"$numberLong": "5"}}
