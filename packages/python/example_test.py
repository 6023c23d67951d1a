"""What the package is for; `tools/package test` runs it where the package is installed."""

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
