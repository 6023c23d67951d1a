/**
 * $where, $function and $accumulator run the client's functions where the data is, with the helpers of the server's scope.
 * Fails when a function sees another document than it should, an endless one outlives maxTimeMS, or a script is taken where none may be.
 */
const t = db.javascript_in_queries;
t.drop();
assert.commandWorked(t.insert([...Array(20).keys()].map((i) => ({_id: i, a: i, b: 19 - i, s: ["x", "y", "z"][i % 3]}))));
const ids = (cursor) => cursor.toArray().map((d) => d._id).sort((a, b) => a - b);

// $where: a function, code, an expression; `this` and `obj` are the document.
const above = [...Array(10).keys()].map((i) => i + 10);
for (const where of [function() { return this.a > this.b; }, "this.a > this.b", "obj.a > obj.b", "var d = this.a - this.b; return d > 0"]) {
    assert.eq(above, ids(t.find({$where: where})), tojson(where));
}
assert.eq([12, 15, 18], ids(t.find({$where: "this.a > this.b", s: "x", a: {$gt: 10}})));
assert.eq([0, 19], ids(t.find({$or: [{a: 0}, {$where: "this.b == 0"}]})));
assert.eq(10, t.count({$where: "this.a < this.b"}));
assert.eq(["x"], t.distinct("s", {$where: "this.a == 3"}));
assert.eq([5], ids(t.find({$where: "isNumber(this.a) && hex_md5(this.s).length == 32 && tojson(this._id) == '5'"})));

// What a function throws is told; what is no function is refused.
const thrown = assert.throws(() => t.find({$where: "nothing.here"}).toArray());
assert.eq([139, true], [thrown.code, /ReferenceError/.test(thrown.message)], tojson(thrown));
assert.commandFailedWithCode(db.runCommand({find: t.getName(), filter: {$where: 5}}), ErrorCodes.BadValue);
// A script names a code of its own, but none by which servers steer one another.
const throwing = (code) => `throw Object.assign(new Error("by a script"), {code: ${code}})`;
for (const [code, expected] of [[4242, 4242], [13388, 139], [10107, 139], [189, 139], [91, 139], [11601, 139]]) {
    const reply = db.runCommand({find: t.getName(), filter: {_id: 1, $where: throwing(code)}});
    assert.commandFailedWithCode(reply, expected);
    assert(/by a script/.test(reply.errmsg), tojson(reply));
}
assert.commandFailedWithCode(db.runCommand({find: t.getName(), filter: {a: {$elemMatch: {$where: "1"}}}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(
    db.runCommand({aggregate: t.getName(), pipeline: [{$match: {$where: "1"}}], cursor: {}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(db.createCollection(t.getName() + "_v", {validator: {$where: "1"}}), ErrorCodes.BadValue);

// maxTimeMS stops what never ends, and the node goes on.
for (const endless of ["for (;;);", "sleep(60000)", "/(a+)+b/.test('a'.repeat(60))"]) {
    const began = Date.now();
    assert.commandFailedWithCode(
        db.runCommand({find: t.getName(), filter: {_id: 1, $where: endless}, maxTimeMS: 300}), ErrorCodes.MaxTimeMSExpired, endless);
    assert.lt(Date.now() - began, 20000);
}
assert.eq(20, t.find({$where: "true"}).itcount());

// Writes evaluate it without holding anybody up.
assert.commandWorked(t.update({$where: "this.a == 3"}, {$set: {seen: true}}));
assert.commandWorked(t.update({$where: "this.a >= 15"}, {$set: {high: true}}, {multi: true}));
assert.eq([1, 5], [t.count({seen: true}), t.count({high: true})]);
assert.commandWorked(t.update({_id: 4}, [{$set: {f: {$function: {body: "function(x) { return x * 2; }", args: ["$a"], lang: "js"}}}}]));
assert.eq(8, t.findOne({_id: 4}).f);
assert.eq(3, t.remove({$where: "this.a >= 17"}).nRemoved);
// A function among comments is called, not taken for true.
for (const none of ["/* c */ function() { return false; }", "function() { return false; } // c", "(function() { return false; })"]) {
    assert.eq(0, t.remove({$where: none}).nRemoved, none);
}
assert.eq(17, t.count());

// $function.
const doubled = {$function: {body: function(a, s) { return s + a; }, args: ["$a", "$s"], lang: "js"}};
assert.eq([{v: "x0"}, {v: "y1"}], t.aggregate([{$sort: {_id: 1}}, {$limit: 2}, {$project: {_id: 0, v: doubled}}]).toArray());
assert.eq([2, 5], ids(t.find({a: {$lt: 6}, $expr: {$function: {body: "function(s) { return s == 'z'; }", args: ["$s"], lang: "js"}}})));
const failsWith = (code, stage) =>
    assert.commandFailedWithCode(db.runCommand({aggregate: t.getName(), pipeline: [stage], cursor: {}}), code, tojson(stage));
failsWith(31260, {$set: {v: {$function: 1}}});
failsWith(31261, {$set: {v: {$function: {args: [], lang: "js"}}}});
failsWith(31262, {$set: {v: {$function: {body: 1, args: [], lang: "js"}}}});
failsWith(31263, {$set: {v: {$function: {body: "function() {}", lang: "js"}}}});
failsWith(31266, {$set: {v: {$function: {body: "function() {}", args: 1, lang: "js"}}}});
failsWith(31418, {$set: {v: {$function: {body: "function() {}", args: []}}}});
failsWith(31419, {$set: {v: {$function: {body: "function() {}", args: [], lang: "lua"}}}});
failsWith(139, {$set: {v: {$function: {body: "function() { throw 'no'; }", args: [], lang: "js"}}}});
failsWith(168, {$set: {v: {$_internalJsEmit: {eval: "function() {}"}}}});

// $accumulator, in one piece or in two.
const average = {
    $accumulator: {
        init: function(start) { return {n: 0, sum: start}; },
        initArgs: [{$cond: [{$eq: ["$s", "x"]}, 0, 0]}],
        accumulate: function(state, v) { return {n: state.n + 1, sum: state.sum + v}; },
        accumulateArgs: ["$a"],
        merge: function(one, other) { return {n: one.n + other.n, sum: one.sum + other.sum}; },
        finalize: function(state) { return state.sum / state.n; },
        lang: "js",
    },
};
const grouped = t.aggregate([{$group: {_id: {s: "$s"}, mean: average, plain: {$avg: "$a"}}}]).toArray();
assert.eq(3, grouped.length);
grouped.forEach((d) => assert.eq(d.plain, d.mean, tojson(d)));
failsWith(4544702, {$group: {_id: 1, v: {$accumulator: Object.assign({}, average.$accumulator, {lang: "lua"})}}});
failsWith(4544705, {$group: {_id: 1, v: {$accumulator: {lang: "js"}}}});

// The pipeline of an upsert runs them too, once for the document that it makes.
const made = [{$set: {f: {$function: {body: "function(x) { return x * 3; }", args: ["$a"], lang: "js"}}}}];
for (const [filter, options] of [[{_id: 100, a: 2}, {upsert: true}], [{a: 333}, {upsert: true}], [{_id: 334, a: 334}, {upsert: true, multi: true}]]) {
    assert.eq(1, assert.commandWorked(t.update(filter, made, options)).nUpserted, tojson(filter));
    assert.eq([filter.a * 3], t.find(filter).toArray().map((d) => d.f), tojson(filter));
}
const upserted = assert.commandWorked(db.runCommand({findAndModify: t.getName(), query: {_id: 101, a: 5}, update: made, upsert: true, new: true}));
assert.eq({_id: 101, a: 5, f: 15}, upserted.value);
const throws = [{$set: {f: {$function: {body: "function() { throw new Error('not made'); }", args: [], lang: "js"}}}}];
assert.commandFailedWithCode(t.update({_id: 102}, throws, {upsert: true}), 139);
assert.eq(0, t.count({_id: 102}));
