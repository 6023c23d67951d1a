"""Twenty analytical questions over real data on three shards, each worked out by hand as well.

Zips, accounts and customers of a bank, shipwrecks and theaters with places: real where they are at hand, seeded stand-ins otherwise.
"""

import math
import statistics
from collections import Counter, defaultdict

import pytest
from bson.son import SON
from datasets import accounts, places, zips

RADIUS_KM = 6378.1
NEW_YORK, MIAMI = [-74.006, 40.7128], [-80.19, 25.76]


class Data:
    def __init__(self):
        self.zips = zips()[0]
        self.accounts, self.customers = accounts()
        self.wrecks, self.theaters = places()


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    from conftest import Cluster

    cluster = Cluster(tmp_path_factory.mktemp("questions"), "--shards", 3)
    try:
        client, data = cluster.client(), Data()
        client.admin.command("enableSharding", "q")
        for name, key in (("zips", "hashed"), ("wrecks", "hashed"), ("accounts", "hashed"), ("theaters", "hashed")):
            client.admin.command("shardCollection", f"q.{name}", key={"_id": key})
        for name in ("zips", "accounts", "customers", "wrecks", "theaters"):
            client.q[name].insert_many(getattr(data, name))
        client.q.wrecks.create_index([("coordinates", "2dsphere")])
        client.q.theaters.create_index([("location.geo", "2dsphere")])
        client.q.customers.create_index([("name", "text"), ("address", "text")], weights={"name": 5}, default_language="none")
        client.q.accounts.create_index("account_id")
        client.q.zips.create_index([("state", 1), ("pop", -1)])
        yield data, client.q
    finally:
        cluster.kill()


def distance_km(a, b):
    """On the great circle, by the haversine."""
    (x1, y1), (x2, y2) = [tuple(map(math.radians, p)) for p in (a, b)]
    h = math.sin((y2 - y1) / 2) ** 2 + math.cos(y1) * math.cos(y2) * math.sin((x2 - x1) / 2) ** 2
    return 2 * RADIUS_KM * math.asin(math.sqrt(h))


def by(rows, key, value=lambda r: 1):
    out = defaultdict(list)
    for row in rows:
        out[key(row)].append(value(row))
    return out


def close(a, b):
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6)
    return a == b


def run(collection, *stages):
    return list(collection.aggregate(list(stages)))


def pairs(rows, value="v"):
    return {r["_id"]: r[value] for r in rows}


# Each question has what the cluster says and what the data say.

def largest_states(d, q):
    totals = {s: sum(p) for s, p in by(d.zips, lambda z: z["state"], lambda z: z["pop"]).items()}
    wanted = sorted(totals.items(), key=lambda p: (-p[1], p[0]))[:10]
    rows = run(q.zips, {"$group": {"_id": "$state", "v": {"$sum": "$pop"}}}, {"$sort": SON([("v", -1), ("_id", 1)])}, {"$limit": 10})
    return [(r["_id"], r["v"]) for r in rows], wanted


def average_city_of_each_state(d, q):
    cities = by(d.zips, lambda z: (z["state"], z["city"]), lambda z: z["pop"])
    wanted = {s: statistics.mean(v) for s, v in by(cities.items(), lambda c: c[0][0], lambda c: sum(c[1])).items()}
    rows = run(q.zips, {"$group": {"_id": {"s": "$state", "c": "$city"}, "p": {"$sum": "$pop"}}}, {"$group": {"_id": "$_id.s", "v": {"$avg": "$p"}}})
    return pairs(rows), wanted


def largest_and_smallest_zip_of_each_state(d, q):
    wanted = {}
    for state, rows in by(d.zips, lambda z: z["state"], lambda z: (z["pop"], z["zip"])).items():
        wanted[state] = [max(rows)[0], min(rows)[0]]
    rows = run(q.zips, {"$sort": SON([("pop", -1), ("zip", 1)])},
               {"$group": {"_id": "$state", "most": {"$first": "$pop"}, "least": {"$last": "$pop"}}},
               {"$project": {"v": ["$most", "$least"]}})
    return pairs(rows), wanted


def spread_of_population(d, q):
    wanted = {s: statistics.pstdev(p) for s, p in by(d.zips, lambda z: z["state"], lambda z: z["pop"]).items()}
    return pairs(run(q.zips, {"$group": {"_id": "$state", "v": {"$stdDevPop": "$pop"}}})), wanted


def zips_by_size(d, q):
    bounds = [0, 100, 1000, 10000, 50000]
    wanted = Counter(max(b for b in bounds if b <= z["pop"]) for z in d.zips)
    rows = run(q.zips, {"$bucket": {"groupBy": "$pop", "boundaries": bounds + [10**9], "output": {"v": {"$sum": 1}}}})
    return pairs(rows), dict(wanted)


def share_that_lives_in_the_ten_largest_zips(d, q):
    wanted = sum(sorted((z["pop"] for z in d.zips), reverse=True)[:10]) / sum(z["pop"] for z in d.zips)
    rows = run(q.zips, {"$group": {"_id": None, "all": {"$sum": "$pop"}, "top": {"$maxN": {"n": 10, "input": "$pop"}}}},
               {"$project": {"v": {"$divide": [{"$sum": "$top"}, "$all"]}}})
    return rows[0]["v"], wanted


def names_shared_by_most_states(d, q):
    states = by(d.zips, lambda z: z["city"], lambda z: z["state"])
    wanted = sorted(((len(set(s)), c) for c, s in states.items()), key=lambda p: (-p[0], p[1]))[:5]
    rows = run(q.zips, {"$group": {"_id": "$city", "s": {"$addToSet": "$state"}}}, {"$project": {"n": {"$size": "$s"}}},
               {"$sort": SON([("n", -1), ("_id", 1)])}, {"$limit": 5})
    return [(r["n"], r["_id"]) for r in rows], wanted


def rank_of_states(d, q):
    totals = {s: sum(p) for s, p in by(d.zips, lambda z: z["state"], lambda z: z["pop"]).items()}
    wanted = {s: 1 + sum(t > totals[s] for t in totals.values()) for s in totals}
    rows = run(q.zips, {"$group": {"_id": "$state", "t": {"$sum": "$pop"}}}, {"$setWindowFields": {"sortBy": {"t": -1}, "output": {"v": {"$rank": {}}}}})
    return pairs(rows), wanted


def products_and_their_accounts(d, q):
    wanted = Counter(p for a in d.accounts for p in a["products"])
    return pairs(run(q.accounts, {"$unwind": "$products"}, {"$sortByCount": "$products"}), "count"), dict(wanted)


def pairs_of_products(d, q):
    wanted = Counter((a, b) for x in d.accounts for a in set(x["products"]) for b in set(x["products"]) if a < b)
    rows = run(q.accounts, {"$project": {"a": "$products", "b": "$products"}}, {"$unwind": "$a"}, {"$unwind": "$b"},
               {"$match": {"$expr": {"$lt": ["$a", "$b"]}}}, {"$group": {"_id": ["$a", "$b"], "v": {"$sum": 1}}})
    return {tuple(r["_id"]): r["v"] for r in rows}, dict(wanted)


def customers_with_the_highest_limits(d, q):
    limits = {a["account_id"]: a["limit"] for a in d.accounts}
    sums = ((sum(limits.get(a, 0) for a in set(c["accounts"])), c["username"]) for c in d.customers)
    wanted = sorted(sums, key=lambda p: (-p[0], p[1]))[:10]
    # An account that was booked twice counts once.
    first = {"$group": {"_id": "$account_id", "limit": {"$last": "$limit"}}}
    rows = run(q.customers, {"$lookup": {"from": "accounts", "localField": "accounts", "foreignField": "account_id", "as": "own",
                                         "pipeline": [{"$sort": {"_id": 1}}, first]}},
               {"$project": {"_id": "$username", "v": {"$sum": "$own.limit"}}}, {"$sort": SON([("v", -1), ("_id", 1)])}, {"$limit": 10})
    return [(r["v"], r["_id"]) for r in rows], wanted


def owners_of_an_account(d, q):
    owners = Counter(a for c in d.customers for a in set(c["accounts"]))
    wanted = Counter(owners[a["account_id"]] for a in d.accounts)
    rows = run(q.accounts, {"$lookup": {"from": "customers", "localField": "account_id", "foreignField": "accounts", "as": "owners"}},
               {"$group": {"_id": {"$size": "$owners"}, "v": {"$sum": 1}}})
    return pairs(rows), dict(wanted)


def customers_by_decade(d, q):
    wanted = Counter(c["birthdate"].year // 10 * 10 for c in d.customers)
    decade = {"$multiply": [{"$floor": {"$divide": [{"$year": "$birthdate"}, 10]}}, 10]}
    return {int(k): v for k, v in pairs(run(q.customers, {"$group": {"_id": decade, "v": {"$count": {}}}})).items()}, dict(wanted)


def providers_of_mail(d, q):
    wanted = Counter(c["email"].split("@")[1] for c in d.customers)
    return pairs(run(q.customers, {"$group": {"_id": {"$arrayElemAt": [{"$split": ["$email", "@"]}, 1]}, "v": {"$sum": 1}}})), dict(wanted)


def customers_called_so(d, q):
    name = d.customers[0]["name"].split()[0].lower()
    words = lambda text: {"".join(filter(str.isalnum, w)) for w in text.lower().split()}
    wanted = sorted(c["username"] for c in d.customers if name in words(c["name"] + " " + c["address"]))
    return sorted(c["username"] for c in q.customers.find({"$text": {"$search": name}})), wanted


def youngest_customer_with_each_number_of_accounts(d, q):
    wanted = {n: max(b) for n, b in by(d.customers, lambda c: len(c["accounts"]), lambda c: c["birthdate"]).items()}
    return pairs(run(q.customers, {"$group": {"_id": {"$size": "$accounts"}, "v": {"$max": "$birthdate"}}})), wanted


def wrecks_near_miami(d, q):
    # Not those so near the edge that another radius of the earth decides.
    distances = [distance_km(w["coordinates"], MIAMI) for w in d.wrecks]
    wanted = sum(km < 100 for km in distances)
    assert not any(abs(km - 100) < 1e-6 for km in distances)
    found = q.wrecks.count_documents({"coordinates": {"$geoWithin": {"$centerSphere": [MIAMI, 100 / RADIUS_KM]}}})
    return found, wanted


def wrecks_by_kind_and_level(d, q):
    wanted = Counter((w["feature_type"], w["watlev"]) for w in d.wrecks)
    rows = run(q.wrecks, {"$group": {"_id": {"f": "$feature_type", "w": "$watlev"}, "v": {"$sum": 1}}})
    return {(r["_id"]["f"], r["_id"]["w"]): r["v"] for r in rows}, dict(wanted)


def mean_depth_of_the_sounded(d, q):
    depths = by((w for w in d.wrecks if isinstance(w["depth"], (int, float))), lambda w: w["feature_type"], lambda w: w["depth"])
    rows = run(q.wrecks, {"$match": {"depth": {"$type": "number"}}}, {"$group": {"_id": "$feature_type", "v": {"$avg": "$depth"}}})
    return pairs(rows), {k: sum(v) / len(v) for k, v in depths.items()}


def theaters_nearest_to_new_york(d, q):
    ordered = sorted((distance_km(t["location"]["geo"]["coordinates"], NEW_YORK), t["theaterId"]) for t in d.theaters)[:10]
    rows = run(q.theaters, {"$geoNear": {"near": {"type": "Point", "coordinates": NEW_YORK}, "distanceField": "m", "distanceMultiplier": 0.001}}, {"$limit": 10})
    return [(r["m"], r["theaterId"]) for r in rows], ordered


QUESTIONS = [
    largest_states, average_city_of_each_state, largest_and_smallest_zip_of_each_state, spread_of_population, zips_by_size,
    share_that_lives_in_the_ten_largest_zips, names_shared_by_most_states, rank_of_states, products_and_their_accounts, pairs_of_products,
    customers_with_the_highest_limits, owners_of_an_account, customers_by_decade, providers_of_mail, customers_called_so,
    youngest_customer_with_each_number_of_accounts, wrecks_near_miami, wrecks_by_kind_and_level, mean_depth_of_the_sounded,
    theaters_nearest_to_new_york,
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda f: f.__name__)
def test_the_cluster_says_what_the_data_say(bank, question):
    found, wanted = question(*bank)
    assert wanted, "a question whose answer is nothing proves nothing"
    assert close(found, wanted), (found, wanted)
