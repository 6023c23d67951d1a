"""Parse Server on a set and on a cluster: it starts, and a small application runs on it."""

import json
import pathlib
import subprocess

import pytest

SHAPES = {"set": ("--replset", "rs0"), "cluster": ("--shards", 2)}
PROGRAM = pathlib.Path(__file__).with_name("parse") / "parse_server.mjs"


@pytest.mark.parametrize("shape", SHAPES)
def test_parse_server_runs_a_small_application(up, shape, tmp_path):
    address, _, options = up(*SHAPES[shape]).uri.partition("?")
    uri = f"{address}parse?{options}"
    done = subprocess.run(["node", PROGRAM, uri], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "health": "ok",
        "updated": [1338, ["a", "b", "c"]],
        "text": ["Sean Plott"],
        "regex": 1,
        "sum": 1338,
        "user": 201,
        "again": 202,
        "login": "Anna",
        "near": ["park", "zoo"],
        "box": ["zoo"],
        "index": {"byName": {"name": 1}},
        "left": 0,
    }
