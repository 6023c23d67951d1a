"""Real data where it is at hand, else a seeded stand-in of the same shape."""

import pathlib
import random

import bson

SHARED = pathlib.Path(__file__).resolve().parent.parent.parent / "shared" / "data"
STATES = ("AK AL AR AZ CA CO CT DC DE FL GA HI IA ID IL IN KS KY LA MA MD ME MI MN MO MS MT NC ND NE NH NJ NM NV NY OH "
          "OK OR PA RI SC SD TN TX UT VA VT WA WI WV WY").split()


def zips(limit=None):
    """(documents, where they came from): `{_id, city, zip, loc: {x, y}, pop, state}`."""
    path = SHARED / "zips.bson"
    if path.exists():
        with open(path, "rb") as file:
            documents = list(bson.decode_file_iter(file))
        source = "the zips data set"
    else:
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
