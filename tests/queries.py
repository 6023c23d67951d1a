"""Generated documents, finds and pipelines whose results do not depend on where documents lie.

A sort ends in `_id`, a skip or a limit stands behind a sort, sums are of numbers that add up exactly, and what has no order
(the elements of `$addToSet`) has a name that begins with `set`. Constants are taken from the documents, so that most queries find some.
"""

import datetime
import random

from bson import Decimal128, Int64, ObjectId

WORDS = "amber basil cedar delta ember fjord grove heron inlet jetty kayak lotus".split()
NAMES = ["Ada", "ada", "Åsa", "Zoë", "zoe", "Émile", "emil", "Łukasz"]
DAY = datetime.datetime(2024, 1, 1)


def documents(n, seed):
    """Documents with an integer `k`, unique, and fields of many kinds, some of them missing here and there."""
    r = random.Random(seed)
    return [document(r, i) for i in range(n)]


def document(r, i):
    d = {
        "_id": ObjectId(bytes([7] * 8) + i.to_bytes(4, "big")),
        "k": i,
        "a": r.randrange(12),
        "b": r.choice([r.randrange(40), r.randrange(160) / 4, Int64(r.randrange(40))]),
        "s": r.choice(WORDS),
        "name": r.choice(NAMES),
        "when": DAY + datetime.timedelta(hours=r.randrange(2000)),
        "tags": r.sample(WORDS, r.randrange(4)),
        "sub": {"x": r.randrange(10), "y": r.choice([None, True, "t"])},
        "items": [{"p": r.randrange(6), "q": r.randrange(20)} for _ in range(r.randrange(4))],
        "pairs": [[r.randrange(6), r.randrange(6)] for _ in range(r.randrange(3))],
        "text": " ".join(r.choices(WORDS, k=5)),
        "place": {"type": "Point", "coordinates": [r.uniform(-30, 30), r.uniform(-30, 30)]},
        "flags": r.randrange(256),
        "dec": Decimal128(str(r.randrange(100)) + ".5"),
    }
    for name, missing in (("b", 0.1), ("s", 0.05), ("tags", 0.05), ("sub", 0.05), ("dec", 0.5)):
        if r.random() < missing:
            del d[name]
        elif r.random() < 0.02:
            d[name] = None
    return d


#: A view of the documents, by the name of which they are read as well.
VIEW = [{"$match": {"k": {"$gte": 60}}}, {"$set": {"a": {"$add": ["$a", 1]}, "seen": "$s"}}]


def array(path):
    """The array at a path, which `$unwind` may have replaced by an element."""
    return {"$cond": [{"$isArray": path}, path, []]}


class Generator:
    """The same seed gives the same queries."""

    def __init__(self, docs, seed):
        self.docs, self.r = docs, random.Random(seed)

    def of(self, path):
        """A value that some document has at the path."""
        for _ in range(20):
            v = self.r.choice(self.docs)
            for name in path.split("."):
                v = v.get(name) if isinstance(v, dict) else None
            if v not in (None, []):
                return v
        return None

    def condition(self, depth=0):
        r = self.r
        field = r.choice(["a", "b", "s", "k", "when", "sub.x", "flags", "name"])
        v = self.of(field)
        near = self.of("place")["coordinates"]
        simple = [
            lambda: {field: v},
            lambda: {field: {r.choice(["$gt", "$gte", "$lt", "$lte"]): v}},
            lambda: {field: {"$ne": v}},
            lambda: {field: {"$in": [v, self.of(field), self.of(field)]}},
            lambda: {"a": {"$nin": [r.randrange(12), r.randrange(12)]}},
            lambda: {r.choice(["a", "b", "tags"]): {"$nin": r.sample([None, [r.randrange(12), 1], [r.choice(WORDS)], r.randrange(12)], 2)}},
            lambda: {"a": {"$gte": r.randrange(6), "$lt": r.randrange(6, 13)}},
            lambda: {"k": {"$gte": r.randrange(len(self.docs)), "$lt": len(self.docs)}},
            lambda: {"s": {"$regex": "^" + r.choice(WORDS)[:2]}},
            lambda: {"text": {"$regex": r.choice(WORDS)[1:4], "$options": "i"}},
            lambda: {r.choice(["b", "s", "dec", "tags"]): {"$exists": r.random() < 0.7}},
            lambda: {"b": {"$type": r.choice(["int", "double", "long", "number", "null"])}},
            lambda: {"tags": r.choice(WORDS)},
            lambda: {"tags": {"$all": [r.choice(WORDS)]}},
            lambda: {"tags": {"$size": r.randrange(4)}},
            lambda: {"items": {"$elemMatch": {"p": {"$gte": r.randrange(5)}, "q": {"$lt": r.randrange(5, 20)}}}},
            lambda: {"items.p": r.randrange(6)},
            lambda: {"k": {"$mod": [r.randrange(2, 6), 1]}},
            lambda: {"flags": {r.choice(["$bitsAllSet", "$bitsAnySet", "$bitsAllClear"]): r.randrange(1, 32)}},
            lambda: {"sub.y": None},
            lambda: {"a": {"$not": {"$gt": r.randrange(12)}}},
            lambda: {"$expr": {r.choice(["$gt", "$lt"]): ["$a", {"$mod": ["$k", r.randrange(3, 12)]}]}},
            lambda: {"$jsonSchema": {"required": ["s"], "properties": {"a": {"maximum": r.randrange(12)}}}},
            lambda: {"place": {"$geoWithin": {"$centerSphere": [near, r.uniform(0.05, 0.4)]}}},
            lambda: {"place": {"$geoIntersects": {"$geometry": self.square(near)}}},
            lambda: {"dec": {"$gt": Decimal128(str(r.randrange(100)))}},
            lambda: {"sub": self.of("sub")},
            lambda: {"tags.0": r.choice(WORDS)},
            lambda: {"pairs": {"$elemMatch": {"0": r.randrange(6)}}},
            lambda: {"tags": {"$elemMatch": {"$gte": r.choice(WORDS), "$lt": r.choice(WORDS)}}},
            lambda: {"items": self.of("items")},
            lambda: {"items.p": r.randrange(6), "items.q": {"$gte": r.randrange(20)}},
            lambda: {"sub.y": {"$in": [None, r.choice([True, "t"])]}},
            lambda: {"s": {"$not": {"$regex": r.choice(WORDS)[2:4]}}},
            lambda: {"when": {"$gte": self.of("when"), "$lt": DAY + datetime.timedelta(hours=r.randrange(2000))}},
            lambda: {"b": {"$gte": r.randrange(10, 40)}},
            lambda: {"sub.x": {"$gt": r.randrange(9)}, "a": {"$lt": r.randrange(3, 12)}},
        ]
        if depth < 2 and r.random() < 0.3:
            parts = [self.condition(depth + 1) for _ in range(r.randrange(2, 4))]
            return {r.choice(["$and", "$or", "$or", "$nor"]): parts}
        return r.choice(simple)()

    def square(self, center):
        x, y = center
        w = self.r.uniform(2, 12)
        ring = [[x - w, y - w], [x + w, y - w], [x + w, y + w], [x - w, y + w], [x - w, y - w]]
        return {"type": "Polygon", "coordinates": [ring]}

    def filter(self):
        r = self.r
        if r.random() < 0.05:
            return {"$text": {"$search": " ".join(r.sample(WORDS, 2)) + r.choice(["", " -" + r.choice(WORDS)])}}
        return {} if r.random() < 0.07 else self.condition()

    def order(self):
        fields = self.r.sample(["a", "b", "s", "when", "sub.x", "tags", "items.q", "name", "dec"], self.r.randrange(1, 3))
        # Two arrays cannot be sorted by at once.
        if "tags" in fields and "items.q" in fields:
            fields.remove("tags")
        return {**{f: self.r.choice([1, -1]) for f in fields}, "_id": self.r.choice([1, -1])}

    def projection(self):
        r = self.r
        return r.choice([
            lambda: {f: 1 for f in r.sample(["a", "b", "s", "k", "tags", "items", "sub", "when"], 3)},
            lambda: {f: 0 for f in r.sample(["a", "b", "s", "items", "place", "text"], 2)},
            lambda: {"_id": 0, "a": 1, "k": 1},
            lambda: {"_id": 0, "k": 1},
            lambda: {"sub.x": 1, "items.q": 1},
            lambda: {"tags": {"$slice": r.randrange(-2, 3) or 1}, "k": 1},
            lambda: {"items": {"$elemMatch": {"p": {"$gte": r.randrange(6)}}}},
            lambda: {"sum": self.expression(), "k": 1},
        ])()

    def find(self):
        """The arguments of a find, and whether its order is given."""
        r = self.r
        out = {"filter": self.filter()}
        ordered = r.random() < 0.55
        if "$text" in out["filter"] and r.random() < 0.6:
            score = {"score": {"$meta": "textScore"}}
            out |= {"sort": {**score, "_id": 1}, "projection": {**score, "k": 1}}
            ordered = True
        elif ordered:
            out["sort"] = self.order()
            if r.random() < 0.5:
                out["limit"] = r.randrange(1, 60)
            if r.random() < 0.25:
                out["skip"] = r.randrange(0, 20)
        elif r.random() < 0.06 and "$text" not in out["filter"]:
            out["filter"] = {"place": {"$nearSphere": {"$geometry": self.of("place"), "$maxDistance": 2_000_000}}}
            ordered, out["limit"] = True, r.randrange(1, 40)
        if r.random() < 0.5 and "projection" not in out:
            out["projection"] = self.projection()
        if r.random() < 0.12 and "$text" not in out["filter"]:
            out["collation"] = {"locale": r.choice(["en", "sv", "fr"]), "strength": r.randrange(1, 4)}
        if r.random() < 0.1 and "place" not in out["filter"]:
            out["let"], out["filter"] = {"v": r.randrange(12)}, {"$expr": {"$lte": ["$a", "$$v"]}}
        out["batchSize"] = r.choice([2, 17, 101, 1000])
        return {"find": self.target(out), **out}, ordered

    def target(self, query):
        """The collection, or its view, which knows neither its text index nor its places."""
        bound = any(name in str(query) for name in ("$text", "$near", "$geoNear"))
        return "v" if not bound and self.r.random() < 0.15 else "c"

    def count(self):
        r = self.r
        out = {"query": self.filter()}
        if r.random() < 0.3:
            out |= {"skip": r.randrange(30), "limit": r.randrange(1, 400)}
        return {"count": self.target(out), **out}

    def distinct(self):
        r = self.r
        key = r.choice(["a", "s", "tags", "items.p", "items", "sub", "sub.x", "name", "dec", "when", "flags"])
        out = {"key": key, "query": self.filter()}
        return {"distinct": self.target(out), **out}

    def expression(self, depth=0):
        r = self.r
        number = lambda: self.expression(depth + 1) if depth < 2 and r.random() < 0.5 else r.choice(["$a", "$k", "$sub.x", "$flags", r.randrange(9)])
        return r.choice([
            lambda: {"$add": [number(), number()]},
            lambda: {"$subtract": [number(), number()]},
            lambda: {"$multiply": [number(), r.randrange(4)]},
            lambda: {"$cond": [{"$gt": ["$a", r.randrange(12)]}, number(), number()]},
            lambda: {"$ifNull": ["$b", number()]},
            lambda: {"$max": [number(), number()]},
            lambda: {"$size": {"$ifNull": ["$items", []]}},
            lambda: {"$reduce": {"input": "$items", "initialValue": 0, "in": {"$add": ["$$value", "$$this.q"]}}},
            lambda: {"$mod": ["$k", r.randrange(2, 9)]},
            lambda: {"$toInt": {"$ifNull": ["$dec", 0]}},
            lambda: {"$dayOfYear": "$when"},
            lambda: {"$strLenCP": {"$ifNull": ["$s", ""]}},
            lambda: {"$let": {"vars": {"v": number()}, "in": {"$add": ["$$v", 1]}}},
            lambda: {"$switch": {"branches": [{"case": {"$eq": ["$s", r.choice(WORDS)]}, "then": 1}], "default": 2}},
            lambda: {"$size": {"$filter": {"input": array("$items"), "cond": {"$gt": ["$$this.q", r.randrange(20)]}}}},
            lambda: {"$sum": {"$map": {"input": array("$items"), "as": "i", "in": {"$multiply": ["$$i.p", r.randrange(1, 4)]}}}},
            lambda: {"$size": {"$setIntersection": [array("$tags"), r.sample(WORDS, 4)]}},
            lambda: {"$indexOfArray": [array("$tags"), r.choice(WORDS)]},
            lambda: {"$first": {"$sortArray": {"input": array("$items.q"), "sortBy": -1}}},
            lambda: {"$strcasecmp": [{"$ifNull": ["$s", ""]}, r.choice(WORDS)]},
            lambda: {"$bitAnd": ["$flags", r.randrange(1, 64)]},
            lambda: {"$dateDiff": {"startDate": DAY, "endDate": "$when", "unit": r.choice(["day", "week", "hour"])}},
            lambda: {"$toInt": {"$floor": {"$divide": ["$k", r.randrange(2, 9)]}}},
            lambda: {"$getField": {"field": "x", "input": {"$ifNull": ["$sub", {}]}}},
            lambda: {"$cond": [{"$regexMatch": {"input": "$text", "regex": r.choice(WORDS)}}, 1, number()]},
            lambda: {"$size": {"$split": ["$text", r.choice(WORDS)[:2]]}},
            lambda: {"$convert": {"input": {"$toString": "$k"}, "to": "long", "onError": -1}},
        ])()

    def accumulators(self):
        r = self.r
        every = [
            ("n", {"$sum": 1}), ("total", {"$sum": "$k"}), ("least", {"$min": "$b"}), ("most", {"$max": "$when"}), ("mean", {"$avg": "$a"}),
            ("set_s", {"$addToSet": "$s"}), ("first", {"$first": "$k"}), ("last", {"$last": "$s"}), ("list", {"$push": "$a"}),
            ("top", {"$topN": {"n": 2, "sortBy": {"b": -1, "_id": 1}, "output": "$k"}}), ("low", {"$minN": {"n": 3, "input": "$k"}}),
            ("count", {"$count": {}}), ("computed", {"$sum": self.expression()}), ("early", {"$firstN": {"n": 2, "input": "$k"}}),
            ("late", {"$lastN": {"n": 2, "input": "$s"}}), ("high", {"$maxN": {"n": 2, "input": "$flags"}}),
            ("bottom", {"$bottom": {"sortBy": {"a": 1, "_id": 1}, "output": ["$k", "$a"]}}), ("merged", {"$mergeObjects": "$sub"}),
            ("set_sub", {"$addToSet": "$sub"}), ("any", {"$max": {"$gt": ["$a", r.randrange(12)]}}),
        ]
        return dict(r.sample(every, r.randrange(1, 5)))

    def group(self):
        r = self.r
        key = r.choice(["$a", "$s", None, {"a": "$a", "x": "$sub.x"}, {"$mod": ["$k", 7]}, {"$month": "$when"}, "$tags"])
        # What takes the first or lists all is fed in order.
        return [{"$sort": {"_id": 1}}, {"$group": {"_id": key, **self.accumulators()}}]

    def window(self):
        r = self.r
        output = r.choice([
            {"run": {"$sum": "$a", "window": {"documents": ["unbounded", "current"]}}},
            {"rank": {"$documentNumber": {}}},
            {"before": {"$shift": {"output": "$k", "by": -1, "default": -1}}},
            {"most": {"$max": "$k", "window": {"documents": [-2, 2]}}},
            {"filled": {"$locf": "$b"}},
            {"ahead": {"$push": "$k", "window": {"documents": [0, 2]}}},
        ])
        by = {"_id": 1}
        if r.random() < 0.4:
            # Ties share their value.
            by, output = r.choice([
                ({"a": 1}, {"place": {r.choice(["$rank", "$denseRank"]): {}}}),
                ({"k": 1}, {"around": {"$sum": "$a", "window": {"range": [-r.randrange(1, 9), r.randrange(9)]}}}),
                ({"when": 1}, {"lately": {"$max": "$k", "window": {"range": [-r.randrange(1, 40), "current"], "unit": "hour"}}}),
            ])
        return [{"$setWindowFields": {"partitionBy": r.choice(["$s", "$sub.x", None]), "sortBy": by, "output": output}}]

    def graph(self):
        r = self.r
        graph = {"from": "other", "startWith": r.choice(["$a", "$sub.x"]), "connectFromField": "sub.x", "connectToField": "a", "as": "set_g"}
        if r.random() < 0.5:
            graph["maxDepth"] = r.randrange(2)
        if r.random() < 0.5:
            graph["restrictSearchWithMatch"] = {"flags": {"$lt": r.randrange(20, 256)}}
        return [{"$graphLookup": graph}, {"$set": {"set_g": {"$size": "$set_g"}}}]

    def fusion(self):
        """Documents that several ranked pipelines find. Those of the same score come in any order."""
        ranked = lambda: [{"$match": self.condition()}, {"$sort": self.order()}, {"$limit": self.r.randrange(1, 30)}]
        return [{"$rankFusion": {"input": {"pipelines": {name: ranked() for name in ("one", "two")}}}}]

    def lookup(self):
        r = self.r
        if r.random() < 0.5:
            return [{"$lookup": {"from": "other", "localField": r.choice(["a", "sub.x", "tags"]), "foreignField": r.choice(["a", "sub.x"]), "as": "set_o"}},
                    {"$set": {"set_o": {"$size": "$set_o"}}}]
        return [{"$lookup": {
            "from": "other", "let": {"v": "$a"}, "as": "o",
            "pipeline": [{"$match": {"$expr": {"$eq": ["$a", "$$v"]}}}, {"$sort": {"_id": 1}}, {"$limit": r.randrange(1, 4)}, {"$project": {"k": 1}}],
        }}]

    def stages(self, depth=0):
        """One step, of one or a few stages."""
        r = self.r
        steps = [
            lambda: [{"$match": self.condition()}],
            lambda: [{"$set": {"e": self.expression()}}],
            lambda: [{"$unset": ["text", "place"]}],
            lambda: [{"$sort": self.order()}, {"$limit": r.randrange(5, 300)}],
            lambda: [{"$unwind": {"path": r.choice(["$tags", "$items"]), "preserveNullAndEmptyArrays": r.random() < 0.5}}],
            lambda: [{"$match": self.condition()}, {"$set": {"e": self.expression(), "f": {"$concat": [{"$ifNull": ["$s", "-"]}, "!"]}}}],
            self.window,
        ]
        if depth == 0:
            steps += [
                self.lookup,
                self.graph,
                lambda: [{"$densify": {"field": "k", "range": {"step": 3, "bounds": [r.randrange(300), r.randrange(300, 500)]}}}],
                lambda: [{"$fill": {"sortBy": {"_id": 1}, "output": {"b": r.choice([{"method": "locf"}, {"value": 0}])}}}],
                lambda: [{"$unionWith": {"coll": "v", "pipeline": [{"$match": self.condition()}]}}],
                lambda: [{"$unionWith": {"coll": "other", "pipeline": [{"$match": self.condition()}]}}],
                lambda: [{"$redact": {"$cond": [{"$lt": ["$a", r.randrange(3, 12)]}, "$$KEEP", "$$PRUNE"]}}],
            ]
        return r.choice(steps)()

    def ending(self):
        r = self.r
        return r.choice([
            lambda: [],
            lambda: [],
            self.group,
            self.group,
            lambda: [{"$count": "n"}],
            lambda: [{"$sortByCount": r.choice(["$s", "$a"])}],
            lambda: [{"$bucket": {"groupBy": "$k", "boundaries": [0, 100, 400, 900], "default": "rest", "output": {"n": {"$sum": 1}}}}],
            lambda: [{"$bucketAuto": {"groupBy": r.choice(["$k", "$a", "$s"]), "buckets": r.randrange(2, 7), "output": {"n": {"$sum": 1}}}}],
            lambda: [{"$facet": {"one": [{"$match": self.condition()}, {"$count": "n"}], "two": [*self.group(), {"$sort": {"_id": 1}}]}}],
            lambda: [{"$replaceRoot": {"newRoot": {"_id": "$_id", "k": "$k", "v": self.expression()}}}],
            lambda: [{"$sort": self.order()}, {"$skip": r.randrange(10)}, {"$limit": r.randrange(1, 50)}],
        ])()

    def pipeline(self):
        """The arguments of an aggregate, and whether its order is given."""
        r = self.r
        head = [{"$match": self.filter()}] if r.random() < 0.85 else []
        if r.random() < 0.04:
            head = self.fusion()
        elif r.random() < 0.05:
            head = [{"$geoNear": {"near": self.of("place"), "distanceField": "d", "key": "place", "maxDistance": 3_000_000}}, {"$limit": 200}]
        steps = [s for _ in range(r.randrange(0, 3)) for s in self.stages()]
        out = {"pipeline": head + steps + self.ending()}
        if r.random() < 0.08 and "$text" not in str(out):
            out["collation"] = {"locale": "en", "strength": r.randrange(1, 4)}
        out["cursor"] = {"batchSize": r.choice([2, 50, 1000])}
        return {"aggregate": self.target(out), **out}, is_ordered(out["pipeline"])


#: Stages that leave the order as it is.
KEEP_ORDER = {"$match", "$set", "$unset", "$limit", "$skip", "$lookup", "$graphLookup", "$redact", "$replaceRoot", "$unwind"}


def is_ordered(pipeline):
    """Whether the pipeline's last order is that of a sort by `_id`, which no two documents share there, and nothing changes it afterwards."""
    names = [next(iter(stage)) for stage in pipeline]
    if "$sort" not in names:
        return False
    last = len(names) - 1 - names[::-1].index("$sort")
    return not {"$unwind", "$unionWith", "$densify"} & set(names[:last]) and set(names[last + 1:]) <= KEEP_ORDER
