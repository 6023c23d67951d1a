"""Real data from the folder that TESSERA_DATASETS names, else a seeded stand-in of the same shape."""

import datetime
import os
import pathlib
import random

import bson

FOLDER = os.environ.get("TESSERA_DATASETS")
STATES = ("AK AL AR AZ CA CO CT DC DE FL GA HI IA ID IL IN KS KY LA MA MD ME MI MN MO MS MT NC ND NE NH NJ NM NV NY OH "
          "OK OR PA RI SC SD TN TX UT VA VT WA WI WV WY").split()


def real(name):
    """The documents of a data set; None where it is not at hand."""
    path = FOLDER and pathlib.Path(FOLDER, f"{name}.bson")
    if not path or not path.exists():
        return None
    with open(path, "rb") as file:
        return list(bson.decode_file_iter(file))


def zips(limit=None):
    """(documents, where they came from): `{_id, city, zip, loc: {x, y}, pop, state}`."""
    documents = real("zips")
    source = "the zips data set"
    if documents is None:
        generator = random.Random(42)
        # Some states have many more towns than others, so that sums and groups differ as the real ones do.
        weights = [5 if state in ("CA", "NY", "TX", "FL") else 1 for state in STATES]
        documents = [
            {
                "_id": bson.ObjectId(bytes([0x5C] * 8) + i.to_bytes(4, "big")),
                "city": generator.choice(["SPRING", "LAKE", "FORT", "NEW", "PORT"]) + generator.choice(["FIELD", "TON", "VIEW", " YORK"]),
                "zip": f"{i % 100000:05}",
                "loc": {"y": generator.uniform(18, 70), "x": generator.uniform(66, 170)},
                "pop": int(generator.expovariate(1 / 8000)),
                "state": generator.choices(STATES, weights)[0],
            }
            for i in range(29353)
        ]
        source = "a seeded generator of the same shape"
    return documents[:limit], source


def identifier(kind, i):
    return bson.ObjectId(bytes([kind] * 8) + i.to_bytes(4, "big"))


PRODUCTS = ["Derivatives", "InvestmentStock", "Brokerage", "Commodity", "CurrencyService", "InvestmentFund"]


def accounts():
    """`{_id, account_id, limit, products: [..]}`, and customers `{_id, username, name, address, birthdate, email, accounts: [..]}`."""
    generator = random.Random(43)
    account_ids = generator.sample(range(50_000, 1_000_000), 1700)
    made = [
        {
            "_id": identifier(0xAC, i), "account_id": account_id, "limit": generator.choice([10000] * 9 + [9000, 8000, 3000]),
            "products": generator.sample(PRODUCTS, generator.randrange(1, 5)),
        }
        for i, account_id in enumerate(account_ids)
    ]
    first = ["Elizabeth", "Brandon", "Lindsay", "Katherine", "Jason", "Michael", "Jennifer"]
    last = ["Ray", "Contreras", "Cowan", "David", "Smith", "Jones", "Miller"]
    customers = [
        {
            "_id": identifier(0xC5, i), "username": f"user{i}", "name": f"{generator.choice(first)} {generator.choice(last)}",
            "address": f"{i} {generator.choice(['Bethany', 'Connie', 'Taylor'])} {generator.choice(['Glens', 'Skyway', 'Street'])}\n"
                       f"{generator.choice(['Vasqueztown', 'Patrickville', 'East Drew'])}, {generator.choice(STATES)} {generator.randrange(10000, 99999)}",
            "birthdate": datetime.datetime(1967, 1, 1) + datetime.timedelta(days=generator.randrange(11000)),
            "email": f"user{i}@{generator.choice(['gmail.com', 'yahoo.com', 'hotmail.com'])}",
            "accounts": generator.sample(account_ids, generator.randrange(1, 7)),
        }
        for i in range(500)
    ]
    return (real("accounts") or made), (real("customers") or customers)


def places():
    """Shipwrecks `{_id, feature_type, depth, watlev, coordinates: [x, y]}`, and theaters `{_id, theaterId, location: {address, geo}}`."""
    generator = random.Random(44)
    kinds = ["Wrecks - Visible", "Wrecks - Submerged, dangerous", "Wrecks - Submerged, nondangerous", "Not Charted"]
    wrecks = [
        {
            "_id": identifier(0x5E, i), "feature_type": generator.choice(kinds), "depth": generator.choice(["", round(generator.uniform(0, 60), 1)]),
            "watlev": generator.choice(["always dry", "always under water/submerged", "covers and uncovers"]),
            "coordinates": [generator.uniform(-82, -66), generator.uniform(24, 45)],
        }
        for i in range(11000)
    ]
    theaters = [
        {
            "_id": identifier(0x7E, i), "theaterId": 1000 + i,
            "location": {
                "address": {"city": generator.choice(["Bloomington", "Arden", "New York", "Houston"]), "state": generator.choice(STATES)},
                "geo": {"type": "Point", "coordinates": [generator.uniform(-120, -70), generator.uniform(26, 48)]},
            },
        }
        for i in range(1500)
    ]
    return (real("shipwrecks") or wrecks), (real("theaters") or theaters)
