/**
 * Monitoring learns from metrics which features of a command applications use.
 * Fails when pipelines and array filters of updates, validators or the stages of pipelines are not counted.
 */
const coll = db.command_metrics;
coll.drop();
assert.commandWorked(coll.insert({_id: 0, a: [1, 2]}));
const metrics = () => assert.commandWorked(db.adminCommand({serverStatus: 1})).metrics;

/** By how much `act` raises the number at `path`. Other clients' commands do not use what is counted here. */
function rise(path, act) {
    const at = () => Number(path.split(".").reduce((found, name) => found[name], metrics()));
    const before = at();
    act();
    return at() - before;
}
for (const command of ["update", "findAndModify"]) {
    const change = (update, options) => command == "update"
        ? db.runCommand({update: coll.getName(), updates: [Object.assign({q: {_id: 0}, u: update}, options)]})
        : db.runCommand(Object.assign({findAndModify: coll.getName(), query: {_id: 0}, update: update}, options));
    const pipeline = () => assert.commandWorked(change([{$set: {b: 1}}]));
    const filtered = () => assert.commandWorked(change({$set: {"a.$[i]": 3}}, {arrayFilters: [{i: 2}]}));
    assert.eq(1, rise(`commands.${command}.pipeline`, pipeline), command);
    assert.eq(0, rise(`commands.${command}.arrayFilters`, pipeline), command);
    assert.eq(1, rise(`commands.${command}.arrayFilters`, filtered), command);
    assert.eq(0, rise(`commands.${command}.pipeline`, filtered), command);
}

const schema = {$jsonSchema: {required: ["a"]}};
const validated = db.command_metrics_validated;
validated.drop();
const create = validator => db.runCommand({create: validated.getName(), validator: validator});
const modify = validator => db.runCommand({collMod: validated.getName(), validator: validator});
assert.eq(1, rise("commands.create.validator.failed", () => assert.commandFailed(create({$bad: 1}))));
assert.eq(1, rise("commands.create.validator.jsonSchema", () => assert.commandWorked(create(schema))));
assert.eq(1, rise("commands.collMod.validator.total", () => assert.commandWorked(modify({a: 1}))));
assert.eq(0, rise("commands.collMod.validator.jsonSchema", () => assert.commandWorked(modify({a: 1}))));
assert.eq(1, rise("commands.collMod.validator.failed", () => assert.commandFailed(modify({$bad: 1}))));

const nested = () => coll.aggregate([{$match: {}}, {$facet: {one: [{$bucketAuto: {groupBy: "$b", buckets: 2}}]}}]).itcount();
assert.lte(1, rise("aggStageCounters.$facet", nested));
assert.lte(1, rise("aggStageCounters.$bucketAuto", nested));
assert.eq(0, rise("aggStageCounters.$redact", nested));

// Operators count where a request says them: in filters, in expressions, and as accumulators of groups and of windows.
const operators = {
    "match.$gt": () => coll.find({$or: [{b: {$not: {$gt: 1}}}, {b: {$elemMatch: {$lt: 3}}}]}).itcount(),
    "match.$elemMatch": () => coll.aggregate([{$lookup: {from: coll.getName(), as: "x", pipeline: [{$match: {a: {$elemMatch: {$gt: 1}}}}]}}]).itcount(),
    "match.$mod": () => coll.deleteMany({a: {$mod: [7, 6]}}),
    "expressions.$multiply": () => coll.aggregate([{$group: {_id: {$literal: {$multiply: 1}}, x: {$sum: {$multiply: [2, "$b"]}}}}]).itcount(),
    "expressions.$cmp": () => coll.find({$expr: {$cmp: ["$a", "$b"]}}).itcount(),
    "expressions.$abs": () => coll.updateOne({_id: 0}, [{$set: {c: {$abs: -1}}}]),
    "groupAccumulators.$stdDevPop": () => coll.aggregate([{$bucketAuto: {groupBy: "$b", buckets: 2, output: {x: {$stdDevPop: "$b"}}}}]).itcount(),
    "windowAccumulators.$rank": () => coll.aggregate([{$setWindowFields: {sortBy: {b: 1}, output: {x: {$rank: {}}}}}]).itcount(),
};
for (const [name, act] of Object.entries(operators)) {
    assert.eq(1, rise(`operatorCounters.${name}`, act), name);
}
assert.eq(0, rise("operatorCounters.match.$gt", () => coll.find({$expr: {$gt: ["$b", 1]}}).itcount()));

const slow = () => assert.commandFailedWithCode(
    db.runCommand({find: coll.getName(), filter: {$where: "sleep(10000); return true"}, maxTimeMS: 20}), 50);
assert.lte(1, rise("operation.killedDueToMaxTimeMSExpired", slow));
