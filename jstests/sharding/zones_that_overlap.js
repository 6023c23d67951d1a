/**
 * Ranges of zones that overlap, which only a write to config.tags can make: the balancer says so once a round and leaves the
 * collection alone, others are balanced, and taking the contradiction away is enough.
 * It fails if rounds end there, or if chunks are moved to and fro.
 *
 * @tags: [requires_own_servers]
 */
import {chunksOf, ownCluster, quickRounds} from "jstests/sharding/libs/cluster.js";

const {st, first, second, admin, config, testDB} = ownCluster("s", {});
for (const name of ["c", "d"]) {
    assert.commandWorked(admin.runCommand({shardCollection: "s." + name, key: {x: 1}}));
    assert.commandWorked(testDB[name].insert(Array.from({length: 20}, (_, x) => ({x: x}))));
}
for (const [shard, zone] of [[first, "one"], [second, "two"]]) {
    assert.commandWorked(admin.runCommand({addShardToZone: shard, zone: zone}));
}
const tag = (name, min, max, zone) => assert.commandWorked(config.tags.insert(
    {_id: {ns: "s." + name, min: {x: min}}, ns: "s." + name, min: {x: min}, max: {x: max}, tag: zone}));
tag("c", 0, 10, "one");
tag("c", 5, 15, "two");
tag("d", 5, 15, "two");

const point = quickRounds(st.configRS.getPrimary());
assert.commandWorked(admin.runCommand({balancerStart: 1}));
const owners = (name) => chunksOf(testDB[name]).map((chunk) => [chunk.min.x, chunk.shard]);
assert.soonNoExcept(() => {
    assert.eq([[MinKey, first], [5, second], [15, first]], owners("d"));
    return true;
});
const errors = config.actionlog.find({what: "balancer.error", ns: "s.c", "details.code": 178});
assert.soon(() => config.actionlog.countDocuments({what: "balancer.error", ns: "s.c", "details.code": 178}) > 0,
            () => tojson(config.actionlog.find().toArray()));
assert(errors.next().details.errmsg.includes("zones one and two"));
assert.eq([[MinKey, first]], owners("c"));

assert.commandWorked(config.tags.remove({ns: "s.c", tag: "one"}));
assert.soonNoExcept(() => {
    assert.eq([[MinKey, first], [5, second], [15, first]], owners("c"));
    return true;
});
point.off();
st.stop();
