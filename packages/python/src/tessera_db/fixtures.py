"""Fixtures for pytest: a set for the whole session, and its address with the data as it was for each test.

    def test_something(tessera_uri):
        client = pymongo.MongoClient(tessera_uri)

What tests should find is put there once, by a fixture of the session named `tessera_data`.
"""

import pytest

import tessera_db

_BASE = "pytest-base"


@pytest.fixture(scope="session")
def tessera_options():
    """What `tessera up` is started with; override it in a conftest.py."""
    return {"replset": "rs0"}


@pytest.fixture(scope="session")
def tessera_cluster(tessera_options):
    """The cluster of the session."""
    with tessera_db.start(**tessera_options) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def tessera_data(tessera_cluster):
    """Puts there what every test finds; override it in a conftest.py."""


@pytest.fixture(scope="session")
def _tessera_base(tessera_cluster, tessera_data):
    tessera_cluster.snapshot(_BASE)
    return tessera_cluster


@pytest.fixture
def tessera_uri(_tessera_base):
    """The address of the cluster; the data is put back after the test."""
    yield _tessera_base.uri
    _tessera_base.restore(_BASE)
