"""Requests that explode: whatever a client may send that asks for far more work or memory than its size suggests.

A request is made of hostile parts (an expression, a filter, an update, a pipeline: deep, wide, doubling, over huge ranges, with
regular expressions that backtrack) and of what carries them: every command that takes such a part, validators, views, indexes,
change streams and transactions. All of it follows from a seed.
"""

import itertools
import random

import bson
from bson import Binary, Code, Int64

DATABASE = "hostile"
WIDE = 5000
MESSAGE_BYTES_MAX = 47_000_000


def fill(db):
    """What the requests are about: arrays, long strings, wide documents, and a collection with indexes of many kinds."""
    db.c.insert_many([{"_id": i, "x": list(range(300)), "s": "ab" * 500, "q": [1]} for i in range(20)])
    db.s.insert_many([{"_id": i, "s": "a" * 200000} for i in range(5)])
    db.u.insert_many([{"_id": i, "x": list(range(300))} for i in range(5)])
    db.w.insert_many([{"_id": i, **{f"f{j}": [j, i] for j in range(WIDE)}} for i in range(4)])
    db.i.insert_many(
        [{"_id": i, "a": i % 7, "b": i % 11, "d": i % 13, "x": list(range(i, i + 40)), "s": "word " * 20 + str(i)} for i in range(1000)]
    )
    for keys in ([("a", 1), ("b", 1), ("d", 1)], [("b", 1), ("a", 1)], [("d", 1)], [("x", 1), ("a", 1)]):
        db.i.create_index(keys)
    db.create_collection("checked")
    db.checked.insert_many([{"_id": i, "x": list(range(50)), "s": "ab" * 100} for i in range(5)])
    for i in range(5):
        db.create_collection(f"view{i}", viewOn=f"view{i - 1}" if i else "c", pipeline=[{"$set": {"x": {"$concatArrays": ["$x", "$x"]}}}])


def nested(depth, make, inner):
    for i in range(depth):
        inner = make(i, inner)
    return inner


def doubling(depth, what):
    return nested(
        depth,
        lambda i, inner: {"$let": {"vars": {f"v{i}": inner}, "in": {what: [f"$$v{i}", f"$$v{i}"]}}},
        "$s" if what == "$concat" else "$x",
    )


def grown(text, doublings):
    """An expression whose value is a text, doubled so many times."""
    return {"$reduce": {"input": {"$range": [0, doublings]}, "initialValue": text * 1000, "in": {"$concat": ["$$value", "$$value"]}}}


def named(make):
    return make.__name__.split("_", 1)[1]


class Hostile:
    """Makes requests. Methods are named by what they make: expression_, filter_, update_, pipeline_, request_."""

    def __init__(self, seed, on_set=False):
        self.random = random.Random(seed)
        # Transactions and change streams need a set.
        self.on_set = on_set

    def any(self, part):
        """A part and what it is called."""
        makes = [getattr(self, name) for name in sorted(dir(self)) if name.startswith(f"{part}_")]
        make = self.random.choice(makes)
        return make(), named(make)

    def pick(self):
        """A command, the database it is sent to, and what it is called."""
        made, name = self.any("request")
        while made is None:
            made, name = self.any("request")
        command, database, part = made if isinstance(made, tuple) else (made, DATABASE, "")
        return command, database, f"{name} {part}".strip()

    # Expressions.

    def expression_maps(self):
        width = self.random.choice([50, 1000])
        return {"$size": nested(
            self.random.randint(2, 5), lambda i, inner: {"$map": {"input": {"$range": [0, width]}, "as": f"m{i}", "in": inner}}, 1)}

    def expression_filters(self):
        return {"$size": nested(3, lambda i, inner: {"$filter": {
            "input": {"$range": [0, 2000]}, "as": f"m{i}", "cond": {"$gte": [inner, 0]}}}, 1)}

    def expression_reduce(self):
        return {"$size": {"$reduce": {
            "input": {"$range": [0, 100000]}, "initialValue": [1, 2, 3],
            "in": {"$concatArrays": ["$$value", "$$value" if self.random.random() < 0.5 else ["$$this"]]},
        }}}

    def expression_growing_string(self):
        return {"$strLenCP": {"$reduce": {"input": {"$range": [0, 100000]}, "initialValue": "", "in": {"$concat": ["$$value", "0123456789"]}}}}

    def expression_growing_object(self):
        field = {"$setField": {"field": {"$literal": "a.b"}, "input": {"o": "$$value"}, "value": "$$value"}}
        return {"$bsonSize": {"$reduce": {"input": {"$range": [0, 60]}, "initialValue": {}, "in": self.random.choice([field, {"l": "$$value", "r": "$$value"}])}}}

    def expression_doubling(self):
        return doubling(self.random.choice([20, 40]), self.random.choice(["$concatArrays", "$concat"]))

    def expression_range(self):
        return {"$size": {"$range": [0, 2000000000, self.random.choice([1, 300, 1000])]}}

    def expression_zip(self):
        return {"$zip": {"inputs": [{"$range": [0, 300000]}] * 20}}

    def expression_sets(self):
        what = self.random.choice(["$setUnion", "$setIntersection", "$setDifference", "$setIsSubset"])
        return {what: [{"$range": [0, 1000000]}, {"$range": [1000000, 0, -1]}]}

    def expression_quadratic_in(self):
        return {"$size": {"$filter": {"input": {"$range": [0, 50000]}, "as": "n", "cond": {"$in": ["$$n", {"$range": [60000, 120000]}]}}}}

    def expression_quadratic_search(self):
        what = self.random.choice(["$indexOfBytes", "$indexOfCP"])
        long = nested(12, lambda i, inner: {"$concat": [inner, inner]}, "aaaaaaaaaa")
        return {"$sum": {"$map": {"input": {"$range": [0, 5000]}, "as": "n", "in": {what: [long, {"$concat": [long, "b"]}]}}}}

    def expression_substrings(self):
        return {"$size": {"$map": {"input": {"$range": [0, 200000]}, "as": "n", "in": {"$substrCP": ["$s", "$$n", 1]}}}}

    def expression_split(self):
        return {"$size": {"$split": [{"$concat": ["$s"] * 200}, self.random.choice(["a", "b", "ab"])]}}

    def expression_replace(self):
        return {"$strLenCP": nested(8, lambda i, inner: {"$replaceAll": {"input": inner, "find": "a", "replacement": "aaaaaaaaaa"}}, "$s")}

    def expression_trim(self):
        return {"$trim": {"input": {"$concat": ["$s"] * 500}, "chars": {"$concat": ["zyx"] * 50000 + ["ab"]}}}

    def expression_regex(self):
        what = self.random.choice(["$regexFindAll", "$regexMatch", "$regexFind"])
        return {what: {"input": {"$concat": ["$s"] * self.random.choice([1, 100])}, "regex": self.random.choice(["a", "(a*)*c", "", "(a+)+$", "(.*)*\\1x"])}}

    def expression_sort(self):
        return {"$sortArray": {"input": {"$map": {"input": {"$range": [0, 500000]}, "as": "n", "in": {"a": {"$mod": ["$$n", 7919]}}}}, "sortBy": {"a": -1}}}

    def expression_objects(self):
        pair = {"k": {"$toString": "$$i"}, "v": 1}
        one, all_of = self.random.choice([
            (pair, lambda pairs: {"$arrayToObject": pairs}), ({"$arrayToObject": [[pair]]}, lambda pairs: {"$mergeObjects": pairs}),
        ])
        return {"$size": {"$objectToArray": all_of({"$map": {"input": {"$range": [0, 60000]}, "as": "i", "in": one}})}}

    def expression_deep(self):
        what = self.random.choice(["$abs", "$not", "$toString", "$objectToArray", "$ifNull"])
        return nested(self.random.choice([80, 150]), lambda i, inner: {what: [inner, 1] if what == "$ifNull" else [inner]}, "$_id")

    def expression_wide(self):
        n = 30000
        return self.random.choice([
            {"$add": [1] * n + ["$_id"]}, {"$and": ["$x"] * n}, {"$concatArrays": ["$x"] * n}, {"$switch": {"branches": [{"case": {"$eq": ["$_id", -1]}, "then": 1}] * n, "default": 1}},
        ])

    def expression_percentile(self):
        return {"$percentile": {"input": {"$range": [0, 2000000]}, "p": [0.5, 0.9], "method": "approximate"}}

    def expression_convert(self):
        return {"$size": {"$map": {"input": {"$range": [0, 1000000]}, "as": "n", "in": {"$toDecimal": {"$toString": {"$sqrt": "$$n"}}}}}}

    def expression_dates(self):
        return {"$size": {"$map": {"input": {"$range": [0, 300000]}, "as": "n", "in": {"$dateToString": {
            "date": {"$toDate": {"$multiply": ["$$n", 1000000]}}, "timezone": "Europe/Berlin", "format": "%Y-%m-%d" * 20}}}}}

    def expression_exploding_replace(self):
        return {"$replaceAll": {"input": grown("a", 10), "find": self.random.choice(["a", ""]), "replacement": grown("b", 10)}}

    def expression_wide_zip(self):
        return {"$zip": {"inputs": [{"$range": [0, 6000000]}] + [[]] * 1000, "useLongestLength": True}}

    def expression_far_search(self):
        what = self.random.choice(["$indexOfBytes", "$indexOfCP"])
        return {what: [grown("a", 12), {"$concat": [grown("a", 11), "b"]}]}

    def expression_split_nothing(self):
        return {"$split": [grown("a", 13), self.random.choice(["a", "b", {"$concat": [grown("a", 12), "b"]}])]}

    def expression_variables(self):
        return {"$let": {"vars": {f"v{i}": i for i in range(20000)}, "in": {"$add": [f"$$v{i}" for i in range(20000)]}}}

    def expression_passed_fields(self):
        wide = {"$arrayToObject": [{"$map": {"input": {"$range": [0, 300000]}, "as": "i", "in": {"k": {"$toString": "$$i"}, "v": 1}}}]}
        return {"$let": {"vars": {"w": wide}, "in": {"$sum": ["$$w.z"] * 10000}}}

    def expression_totals(self):
        what = self.random.choice(["$sum", "$avg", "$stdDevPop", "$max", "$anyElementTrue"])
        return {what: [{"$range": [0, 6500000]}]}

    def expression_extremes(self):
        return {self.random.choice(["$minN", "$maxN"]): {"n": 3, "input": {"$range": [0, 6500000]}}}

    def expression_long_format(self):
        return {"$dateToString": {"date": {"$toDate": "$_id"}, "format": grown("%Y", 12)}}

    def expression_javascript(self):
        body = self.random.choice(["function() { for (;;) {} }", "function() { const a = []; for (;;) a.push('x'.repeat(1000)); }", "function f() { return f() + 1; }"])
        return {"$function": {"body": body, "args": [], "lang": "js"}}

    # Filters.

    def filter_expression(self):
        return {"$expr": {"$gt": [self.any("expression")[0], 5]}}

    def filter_regex(self):
        return {"s": {"$regex": self.random.choice(["(a+)+$", "(a|a)*c", "(.*)*\\1x", "a.*a.*a.*c", "(x+x+)+y", "(?=(a+))a*c|" * 500])}}

    def filter_many_regexes(self):
        return {"$or": [{"s": {"$regex": f"a.*{i}.*b"}} for i in range(5000)]}

    def filter_in(self):
        return {self.random.choice(["_id", "x", "a"]): {"$in": list(range(100000, 0, -1))}}

    def filter_products(self):
        return {f: {"$in": list(range(300))} for f in ("a", "b", "d")}

    def filter_and_of_ors(self):
        return {"$and": [{"$or": [{"a": i}, {"b": i}, {"d": i}]} for i in range(self.random.choice([5, 40]))]}

    def filter_or(self):
        return {"$or": [{"a": i, "b": {"$gt": i}} for i in range(self.random.choice([100, 20000]))]}

    def filter_deep(self):
        what = self.random.choice(["$and", "$or", "$nor"])
        return nested(self.random.choice([40, 90, 120]), lambda i, inner: {what: [inner, {"a": i}]}, {"x": 1})

    def filter_elements(self):
        return nested(60, lambda i, inner: {"x": {"$elemMatch": inner}}, {"x": 1})

    def filter_all(self):
        return {"x": {"$all": list(range(50000))}}

    def filter_deep_path(self):
        return {".".join(["x"] * self.random.choice([150, 5000])): 1}

    def filter_bits(self):
        return {"_id": {"$bitsAllSet": list(range(50000))}}

    def filter_mask(self):
        return {"s": {self.random.choice(["$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear"]): Binary(b"\xff" * 8000000, 0)}}

    def filter_positions(self):
        return {"x" + ".0" * self.random.choice([100, 150, 5000]): 1}

    def filter_sizes(self):
        return {"$or": [*({"x": {"$size": 299 - i % 2}} for i in range(10000)), *({f"x.y{i}": 1} for i in range(10000))]}

    def filter_types(self):
        return {"x": {"$type": ["object", "string"] * 200000}}

    def filter_one_field(self):
        return {"$and": [{"d": {"$in": list(range(50000))}}, *({"d": {"$type": "number"}} for _ in range(50000))]}

    def filter_wide(self):
        return {f"f{i}": [i, 1] for i in range(self.random.choice([WIDE, 20000]))}

    def filter_required(self):
        names = [f"f{i}" for i in range(100000)]
        return {"$jsonSchema": self.random.choice([
            {"required": names}, {"properties": {name: {"bsonType": "int"} for name in names}}, {"properties": {"x": {"items": {"enum": names}}}},
            {"dependencies": {name: ["f0", "nothing"] for name in names}}])}

    def filter_schema(self):
        schema = nested(self.random.choice([10, 60]), lambda i, inner: {"anyOf": [inner, {"properties": {"x": inner}}] if i < 10 else [inner]}, {"bsonType": "array"})
        pattern = {"patternProperties": {self.random.choice(["(f+)+$", "f.*1"]): {"bsonType": "int"}}, "additionalProperties": False}
        return {"$jsonSchema": self.random.choice([schema, pattern, {"properties": {"x": {"uniqueItems": True, "items": schema}}}])}

    def filter_javascript(self):
        return {"$where": self.random.choice(["for (;;) {}", "while (true) { this.y = 'x'.repeat(1000000) }", "(function f() { return f() })()"])}

    def filter_area(self):
        ring = [[i / 1000, (i * 7919 % 1000) / 1000] for i in range(5000)]
        return {"x": {"$geoWithin": {"$polygon": ring}}}

    # Updates.

    def update_expression(self):
        return [{"$set": {"q": self.any("expression")[0]}}]

    def update_doubling(self):
        return [{"$set": {"q": ["$q", "$q"]}}] * 40

    def update_wide(self):
        return {"$set": {f"f{i}": i for i in range(50000)}}

    def update_deep(self):
        return {"$set": {".".join(f"d{i}" for i in range(self.random.choice([90, 190]))): 1}}

    def update_far_element(self):
        return {"$set": {f"far.{self.random.choice([100000, 1500000, 2000000000])}": 1}}

    def update_push(self):
        return {"$push": {"x": {"$each": list(range(50000, 0, -1)), "$sort": -1, "$slice": -100000}}}

    def update_add_to_set(self):
        return {"$addToSet": {"x": {"$each": list(range(50000))}}}

    def update_pull(self):
        return self.random.choice([{"$pullAll": {"x": list(range(100000))}}, {"$pull": {"x": {"$in": list(range(100000))}}}])

    def update_rename(self):
        return {"$rename": {f"f{i}": f"g{i}" for i in range(5000)}}

    def update_all_elements(self):
        return {"$set": {"x.$[]": "y" * 10000}}

    def update_below_each_element(self):
        elements = {"$map": {"input": {"$range": [0, 100000]}, "as": "n", "in": {"n": "$$n"}}}
        return [{"$set": {"y": elements}}, {"$set": {"y.a": "y" * 1000000}}, {"$unset": "y"}]

    def update_positions_and_names(self):
        return {"$set": {f"o.{i}{'a' if i % 2 else ''}": i for i in range(20000)}}

    def update_rename_to_below(self):
        return {"$rename": {f"f{i}": f"g{i}.h" for i in range(20000)}}

    # Pipelines.

    def pipeline_expression(self):
        return [{"$project": {"n": self.any("expression")[0]}}]

    def pipeline_match(self):
        return [{"$match": self.any("filter")[0]}, {"$count": "n"}]

    def pipeline_unwinds(self):
        names = ["a", "b", "d", "e"][: self.random.randint(2, 4)]
        return [{"$set": {k: "$x" for k in names}}, *({"$unwind": f"${k}"} for k in names), {"$count": "n"}]

    def two(self):
        return [{"$set": {"a": "$x"}}, {"$unwind": "$a"}, {"$unwind": "$x"}]

    def pipeline_group(self):
        by = self.random.choice([{"a": "$a", "x": "$x", "i": "$_id"}, None, "$a"])
        what = self.random.choice(["$push", "$addToSet", "$mergeObjects"])
        value = {"v": {"$toString": "$x"}} if what == "$mergeObjects" else "$$ROOT"
        return [*self.two(), {"$group": {"_id": by, "all": {what: value}}}]

    def pipeline_top(self):
        return [*self.two(), {"$group": {"_id": "$a", "t": {"$topN": {"n": 100000000, "sortBy": {"x": 1}, "output": "$$ROOT"}}}}]

    def pipeline_least(self):
        return [*self.two(), {"$group": {"_id": None, "t": {self.random.choice(["$minN", "$maxN"]): {"n": 100000000, "input": {"$rand": {}}}}}}]

    def pipeline_bucket(self):
        return [{"$bucket": {"groupBy": {"$concat": ["x" * 1000000, "$s"]}, "boundaries": [f"{i:06}" for i in range(50000)], "default": "x"}}]

    def pipeline_merged(self):
        return [*self.two(), {"$group": {"_id": None, "m": {"$mergeObjects": {"$arrayToObject": [[[{"$toString": {"$rand": {}}}, "y" * 100000]]]}}}}]

    def pipeline_doubling(self):
        return [{"$set": {"q": ["$q", "$q"]}} for _ in range(40)]

    def pipeline_stages(self):
        return [{"$set": {f"k{i}": "$x"}} for i in range(self.random.choice([900, 2000]))]

    def pipeline_facets(self):
        return [{"$facet": {f"f{i}": [{"$set": {f"y{j}": "$x" for j in range(20)}}, {"$unwind": "$x"}] for i in range(20)}}]

    def pipeline_lookups(self):
        n = self.random.randint(1, 3)
        return [*({"$lookup": {"from": "c", "pipeline": [], "as": f"l{i}"}} for i in range(n)), {"$unwind": "$l0"}]

    def pipeline_join(self):
        return [*self.two(), {"$lookup": {"from": "i", "localField": "x", "foreignField": self.random.choice(["x", "d", "s"]), "as": "l"}}, {"$unwind": "$l"}, {"$count": "n"}]

    def pipeline_join_of_views(self):
        return [{"$lookup": {"from": f"view{self.random.randrange(5)}", "localField": "x", "foreignField": "x", "as": "l"}}]

    def pipeline_nested_lookups(self):
        pipeline = nested(4, lambda i, inner: [{"$lookup": {"from": "c", "pipeline": inner, "as": "l"}}, {"$unwind": "$l"}], [])
        return [*pipeline, {"$count": "n"}]

    def pipeline_correlated(self):
        return [{"$lookup": {"from": "i", "let": {"x": "$x"}, "pipeline": [{"$match": {"$expr": {"$in": ["$a", "$$x"]}}}, {"$unwind": "$x"}], "as": "l"}}]

    def pipeline_graph(self):
        return [{"$graphLookup": {"from": self.random.choice(["c", "i"]), "startWith": "$x", "connectFromField": "x", "connectToField": "x", "as": "g"}}]

    def pipeline_unions(self):
        pipeline = nested(10, lambda i, inner: [{"$unionWith": {"coll": "c", "pipeline": inner}}, {"$unwind": "$x"}], [])
        return [*pipeline, {"$sort": {"x": self.random.choice([1, -1])}}]

    def pipeline_windows(self):
        bounds = self.random.choice([["current", "unbounded"], ["unbounded", "current"], [-5000, 5000]])
        function = self.random.choice([
            {"$sum": "$x"}, {"$push": "$x"}, {"$covariancePop": ["$x", "$_id"]}, {"$median": {"input": "$x", "method": "approximate"}},
            {"$addToSet": "$x"}, {"$minN": {"n": 1000, "input": "$x"}},
        ])
        return [*self.two(), {"$limit": 40000}, {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"r": {**function, "window": {"documents": bounds}}}}}, {"$count": "n"}]

    def pipeline_sort(self):
        return [*self.two(), {"$sort": {"x": 1, "a": -1}}]

    def pipeline_bucket_auto(self):
        return [*self.two(), {"$bucketAuto": {"groupBy": "$x", "buckets": self.random.choice([7, 2000000000])}}]

    def pipeline_densify_partitions(self):
        return [*self.two(), {"$set": {"p": {"$rand": {}}}}, {"$densify": {
            "field": "a", "partitionByFields": ["p"], "range": {"step": 1, "bounds": "full"}}}, {"$count": "n"}]

    def pipeline_deviations(self):
        return [*self.two(), {"$limit": 40000}, {"$set": {"x": float("nan")}}, {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {
            "r": {"$stdDevPop": "$x", "window": {"documents": ["current", "unbounded"]}}}}}, {"$count": "n"}]

    def pipeline_bindings(self):
        names = {f"v{i}": i for i in range(50000)}
        return [{"$lookup": {"from": "c", "let": names, "pipeline": [{"$match": {"$expr": {"$eq": ["$_id", "$$v1"]}}}], "as": "l"}}]

    def pipeline_densify(self):
        return [{"$densify": {"field": "_id", "range": {"step": 0.0001, "bounds": [0, 1000]}}}, {"$count": "n"}]

    def pipeline_fill(self):
        return [*self.two(), {"$fill": {"sortBy": {"x": 1}, "output": {"missing": {"method": "linear"}}}}, {"$count": "n"}]

    def pipeline_redact(self):
        return [{"$redact": {"$cond": [{"$gt": [self.any("expression")[0], 0]}, "$$DESCEND", "$$PRUNE"]}}]

    def pipeline_documents(self):
        return [{"$set": {"o": "$x"}}, {"$unwind": "$o"}, {"$replaceRoot": {"newRoot": {"d": "$$ROOT", "e": "$$ROOT"}}}, {"$sort": {"d.o": 1}}]

    def pipeline_out(self):
        return [*self.two(), {"$project": {"_id": 0, "a": 1, "x": 1}}, self.random.choice([{"$out": "out"}, {"$merge": {"into": "merged"}}])]

    def pipeline_score(self):
        return [{"$unionWith": "w"}, {"$set": {"all": {"$objectToArray": "$$ROOT"}}}, {"$unwind": "$all"}, {"$group": {"_id": "$all.k", "v": {"$push": "$$ROOT"}}}]

    # Requests.

    @property
    def source(self):
        return self.random.choice(["c", "c", "i", "s", "w", "u"])

    def request_aggregate(self):
        pipeline, part = self.any("pipeline")
        more = self.random.choice([{}, {}, {"allowDiskUse": False}])
        return {"aggregate": "c" if part != "match" else self.source, "pipeline": pipeline, "cursor": {}, **more}, DATABASE, part

    request_aggregate_again = request_aggregate

    def request_view(self):
        pipeline, part = self.any("pipeline")
        return {"aggregate": f"view{self.random.randrange(5)}", "pipeline": pipeline, "cursor": {}}, DATABASE, part

    def request_explain(self):
        inner, _, part = self.random.choice([self.request_aggregate, self.request_find])()
        return {"explain": inner, "verbosity": self.random.choice(["executionStats", "allPlansExecution"])}, DATABASE, part

    def request_find(self):
        chosen, part = self.any("filter")
        more = self.random.choice([{}, {"sort": {"x": -1, "s": 1}}, {"projection": {"n": self.any("expression")[0]}}, {"singleBatch": True}, {"skip": 10**9}])
        return {"find": self.source, "filter": chosen, **more}, DATABASE, part

    request_find_again = request_find

    def request_find_slices(self):
        names = self.random.choice([[f"f{i}" for i in range(20000)], [f"x.f{i}" for i in range(20000)]])
        return {"find": self.source, "projection": {name: {"$slice": self.random.choice([1, -1, [2, 3]])} for name in names}}

    def request_find_phrases(self):
        return {"find": self.random.choice(["i", "checked"]), "filter": {"$text": {"$search": '"a" "b" -"c" ' * 100000}}}

    def request_find_one_of_view(self):
        chosen, part = self.any("filter")
        return {"find": "view4", "filter": chosen, "limit": 1}, DATABASE, part

    def request_count(self):
        chosen, part = self.any("filter")
        return {"count": self.source, "query": chosen}, DATABASE, part

    def request_distinct(self):
        chosen, part = self.any("filter")
        return {"distinct": self.source, "key": self.random.choice(["x", "s", "f1"]), "query": chosen}, DATABASE, part

    def request_update(self):
        change, part = self.any("update")
        query = self.random.choice([{}, {"_id": 1}, self.any("filter")[0]])
        return {"update": "u", "updates": [{"q": query, "u": change, "multi": self.random.random() < 0.5 and query == {}}]}, DATABASE, part

    request_update_again = request_update

    def request_update_elements(self):
        filters = [{"e.x": {"$elemMatch": self.any("filter")[0]}}]
        return {"update": "u", "updates": [{"q": {}, "u": {"$set": {"x.$[e]": 1}}, "arrayFilters": filters}]}

    def request_upsert(self):
        change, part = self.any("update")
        return {"update": "u", "updates": [{"q": {"_id": self.random.randrange(100, 110)}, "u": change, "upsert": True}]}, DATABASE, part

    def request_upsert_of_many_fields(self):
        query = {f"f.{i}": i for i in range(20000)}
        return {"update": "upserted", "updates": [{"q": query, "u": {"$set": {f"g{i}": i for i in range(20000)}}, "upsert": True}]}

    def request_point_statements(self):
        updates = [{"q": {"_id": i % 5}, "u": {"$set": {"p": i}}} for i in range(20000)]
        deletes = [{"q": {"_id": -i - 1}, "limit": 1} for i in range(20000)]
        return self.random.choice([{"update": "u", "updates": updates}, {"delete": "u", "deletes": deletes}])

    def request_updates_with_long_errors(self):
        return {"update": "s", "updates": [{"q": {"_id": i % 5}, "u": {"$set": {"s.a": 1}}} for i in range(500)], "ordered": False}

    def request_find_and_modify(self):
        change, part = self.any("update")
        return {"findAndModify": "u", "query": self.random.choice([{"_id": 2}, self.any("filter")[0]]), "sort": {"x": 1}, "update": change}, DATABASE, part

    def request_delete(self):
        # Of what never holds for all, so that what the others work on stays.
        chosen, part = self.any("filter")
        return {"delete": "u", "deletes": [{"q": {"$and": [chosen, {"_id": {"$gt": 4}}]}, "limit": 0}]}, DATABASE, part

    def request_map_reduce(self):
        emits = self.random.choice([
            "for (;;) {}", "for (let i = 0; i < 1e7; i++) emit(i, this.s)", "for (let i = 0; i < 1e7; i++) emit(1, i)", "emit(this._id, 'x'.repeat(2e7))"])
        return {"mapReduce": "c", "map": Code(f"function() {{ {emits} }}"), "reduce": Code("function(k, v) { return v[0] }"), "out": {"inline": 1}}

    def request_indexes(self):
        key, more = self.random.choice([
            ({"x": 1, "s": 1}, {}), ({"$**": 1}, {}), ({"s": "text"}, {}), ({"x": "2d"}, {}), ({"s": "hashed"}, {}),
            ({"s": 1}, {"collation": {"locale": "de"}}), ({f"f{i}": 1 for i in range(32)}, {}),
            ({"s": 1}, {"partialFilterExpression": {"s": {"$type": [2] * 10000}}}),
        ])
        name = f"hostile{self.random.randrange(1 << 30)}"
        return {"createIndexes": self.random.choice(["i", "s", "w"]), "indexes": [{"key": key, "name": name, **more}]}

    def request_drop_indexes(self):
        return {"dropIndexes": self.random.choice(["s", "w"]), "index": "*"}

    def request_validator(self):
        chosen, part = self.any("filter")
        return {"collMod": "checked", "validator": chosen, "validationAction": "error"}, DATABASE, part

    def request_validated(self):
        return {"insert": "checked", "documents": [{"x": list(range(300)), "s": "ab" * 500}] * self.random.choice([1, 100])}

    def request_validate(self):
        return {"validate": self.random.choice(["i", "w", "checked"]), "full": True}

    def request_bulk_write(self):
        ops = []
        for _ in range(self.random.choice([1, 20])):
            chosen, change = self.any("filter")[0], self.any("update")[0]
            ops.append(self.random.choice([
                {"update": 0, "filter": chosen, "updateMods": change}, {"update": 0, "filter": {"_id": 3}, "updateMods": change, "upsert": True},
                {"delete": 0, "filter": {"$and": [chosen, {"_id": {"$gt": 4}}]}, "multi": True}]))
        # A longer message loses its connection.
        sizes = itertools.accumulate(len(bson.encode(op)) for op in ops)
        ops = [op for op, size in zip(ops, sizes) if size < MESSAGE_BYTES_MAX]
        return {"bulkWrite": 1, "ops": ops, "nsInfo": [{"ns": f"{DATABASE}.u"}], "ordered": False}, "admin", ""

    def request_made_view(self):
        pipeline, part = self.any("pipeline")
        return {"create": f"made{self.random.randrange(1 << 30)}", "viewOn": "c", "pipeline": pipeline[:-1] if part == "out" else pipeline}, DATABASE, part

    def request_watch(self):
        if not self.on_set:
            return None
        stages = [{"$match": self.any("filter")[0]}, {"$project": {"n": self.any("expression")[0]}}, {"$set": {"n": ["$$ROOT", "$$ROOT"]}}]
        return {"aggregate": "u", "pipeline": [{"$changeStream": {"fullDocument": "updateLookup"}}, self.random.choice(stages)], "cursor": {}}

    def request_in_transaction(self):
        if not self.on_set:
            return None
        command, database, part = self.random.choice([
            self.request_aggregate, self.request_find, self.request_update, self.request_find_and_modify, self.request_delete, self.request_bulk_write])()
        session = {"id": Binary(self.random.randbytes(16), 4)}
        return {**command, "lsid": session, "txnNumber": Int64(1), "autocommit": False, "startTransaction": True}, database, part
