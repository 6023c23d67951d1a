/**
 * $merge writes results into a collection, with a rule for those that are there already and those that are not.
 * Fails when a rule does something else, documents beside the results change, or an unfit key or mode is taken.
 *
 * @tags: [
 *   # The target is an ordinary collection.
 *   assumes_unsharded_collection,
 * ]
 */
const source = db.merge_stage_source;
const target = db.merge_stage_target;
source.drop();
assert.commandWorked(source.insert([{_id: 1, v: "new", k: 1}, {_id: 2, v: "new", k: 2}, {_id: 5, v: "new", k: 5}]));

function merged(options) {
    target.drop();
    assert.commandWorked(target.insert([{_id: 1, v: "old", keep: 1}, {_id: 2, v: "old"}, {_id: 9, v: "old"}]));
    const result = source.aggregate([{$merge: Object.assign({into: target.getName()}, options)}]).toArray();
    assert.eq([], result);
    return target.find().sort({_id: 1}).toArray();
}
assert.eq([{_id: 1, v: "new", keep: 1, k: 1}, {_id: 2, v: "new", k: 2}, {_id: 5, k: 5, v: "new"}, {_id: 9, v: "old"}], merged({}));
assert.eq([{_id: 1, v: "new", k: 1}, {_id: 2, v: "new", k: 2}, {_id: 5, v: "new", k: 5}, {_id: 9, v: "old"}], merged({whenMatched: "replace"}));
assert.eq([{_id: 1, v: "old", keep: 1}, {_id: 2, v: "old"}, {_id: 5, k: 5, v: "new"}, {_id: 9, v: "old"}], merged({whenMatched: "keepExisting"}));
assert.eq([{_id: 1, v: "new", keep: 1, k: 1}, {_id: 2, v: "new", k: 2}, {_id: 9, v: "old"}], merged({whenMatched: "merge", whenNotMatched: "discard"}));
assert.eq([{_id: 1, v: "old+new", keep: 1}, {_id: 2, v: "old+new"}, {_id: 5, v: "new", k: 5}, {_id: 9, v: "old"}],
          merged({whenMatched: [{$set: {v: {$concat: ["$v", "+", "$$new.v"]}}}]}));
assert.eq("old!1", merged({let: {mark: "$k"}, whenMatched: [{$set: {v: {$concat: ["$v", "!", {$toString: "$$mark"}]}}}]})[0].v);
// A function, and an expression that takes long, are evaluated once for each change, with what `let` binds.
const joined = {$function: {body: "function(a, b) { return a + b; }", args: ["$v", "$$more"], lang: "js"}};
const tenfold = {$function: {body: "function(x) { return x * 10; }", args: ["$k"], lang: "js"}};
const none = {$size: {$filter: {input: {$range: [0, 60000]}, cond: {$lt: ["$$this", 0]}}}};
for (const pipeline of [[{$set: {v: joined}}], [{$set: {v: {$concat: ["$v", {$toString: "$$more"}]}}}]]) {
    const all = merged({let: {more: tenfold}, whenMatched: pipeline.concat({$set: {n: {$add: [{$ifNull: ["$n", 0]}, 1, none]}}})});
    assert.eq([{_id: 1, v: "old10", keep: 1, n: 1}, {_id: 2, v: "old20", n: 1}, {_id: 5, v: "new", k: 5}, {_id: 9, v: "old"}], all);
}

function failing(codes, options) {
    target.drop();
    assert.commandWorked(target.insert([{_id: 5, v: "old"}]));
    const pipeline = [{$merge: Object.assign({into: target.getName()}, options)}];
    const reply = db.runCommand({aggregate: source.getName(), pipeline: pipeline, cursor: {}});
    assert.commandFailedWithCode(reply, codes, () => tojson(options));
    assert.eq(null, target.findOne({_id: 9}));
    return reply;
}
const taken = failing(ErrorCodes.DuplicateKey, {whenMatched: "fail"});
assert.eq([{_id: 1}, {_id: 5}], [taken.keyPattern, taken.keyValue], tojson(taken));
assert.eq("old", target.findOne({_id: 5}).v);
failing(13113, {whenNotMatched: "fail"});
assert.eq(null, target.findOne({_id: 1}));

function refused(codes, ...pipeline) {
    assert.commandFailedWithCode(db.runCommand({aggregate: source.getName(), pipeline: pipeline, cursor: {}}), codes, () => tojson(pipeline));
}
refused([51182, ErrorCodes.TypeMismatch], {$merge: 1});
refused([40414, 51178, ErrorCodes.FailedToParse], {$merge: {whenMatched: "merge"}});
refused(ErrorCodes.BadValue, {$merge: {into: "x", whenMatched: "shrug"}});
refused(ErrorCodes.BadValue, {$merge: {into: "x", whenNotMatched: "shrug"}});
refused(51181, {$merge: {into: "x", whenMatched: "fail", whenNotMatched: "fail"}});
refused(51186, {$merge: {into: "x", on: null}});
refused(51191, {$merge: {into: "x", whenMatched: null}});
refused(51199, {$merge: {into: "x", let: {a: 1}, whenMatched: "merge"}});
refused(51199, {$merge: {into: "x", let: {a: 1}}});
refused(40415, {$merge: {into: "x", unheardOf: 1}});
refused(40601, {$merge: "x"}, {$match: {}});
refused(51187, {$merge: {into: "x", on: []}});
refused([51134, 51135, 51186], {$merge: {into: "x", on: 1}});
refused([51190, 51183], {$merge: {into: target.getName(), on: "k"}});

// Nothing can be written into a view.
db.merge_stage_view.drop();
assert.commandWorked(db.createView("merge_stage_view", target.getName(), []));
refused(ErrorCodes.CommandNotSupportedOnView, {$merge: "merge_stage_view"});
refused([ErrorCodes.CommandNotSupportedOnView, ErrorCodes.IllegalOperation], {$out: "merge_stage_view"});
assert(db.merge_stage_view.drop());

// A null is no option, but for the fields and the mode.
assert.eq(merged({}), merged({let: null, whenNotMatched: null}));
assert.eq(merged({whenMatched: "replace"}), merged({let: null, whenMatched: "replace"}));
assert.commandFailedWithCode(
    db.runCommand({aggregate: source.getName(), cursor: {}, pipeline: [{$merge: {into: target.getName(), let: {"a$b": 1}, whenMatched: []}}]}),
    ErrorCodes.FailedToParse);
