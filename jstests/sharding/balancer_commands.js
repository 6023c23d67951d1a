/**
 * The balancer is started, stopped and asked for its state through the router; the settings document shows it.
 * It fails if a stopped balancer begins a round, the status lacks a field, or settings and status disagree.
 *
 * @tags: [requires_own_servers]
 */
import {quickRounds} from "jstests/sharding/libs/cluster.js";

const st = new ShardingTest({shards: 2});
const admin = st.s.getDB("admin");
const settings = st.s.getDB("config").settings;
const status = () => assert.commandWorked(admin.runCommand({balancerStatus: 1}));

assert.commandWorked(admin.runCommand({balancerStop: 1}));
let now = status();
assert.eq("off", now.mode);
assert.eq(false, now.inBalancerRound);
assert(now.numBalancerRounds instanceof NumberLong || typeof now.numBalancerRounds === "number", tojson(now));
assert.gte(Number(now.term), 1, tojson(now));
let entry = settings.findOne({_id: "balancer"});
assert.eq("off", entry.mode);
assert.eq(true, entry.stopped);
assert.eq(false, sh.getBalancerState(st.s.getDB("config")));

assert.commandWorked(admin.runCommand({balancerStart: 1, maxTimeMS: 60000}));
now = status();
assert.eq("full", now.mode);
entry = settings.findOne({_id: "balancer"});
assert.eq("full", entry.mode);
assert.eq(false, entry.stopped);
assert.eq(true, sh.getBalancerState(st.s.getDB("config")));
const point = configureFailPoint(st.configRS.getPrimary(), "overrideBalanceRoundInterval", {intervalMs: 100});
const rounds = Number(status().numBalancerRounds);
assert.soon(() => Number(status().numBalancerRounds) > rounds + 1, "rounds go on", 30 * 1000);

// Stopped again: no more rounds.
assert.commandWorked(admin.runCommand({balancerStop: 1}));
const stopped = Number(status().numBalancerRounds);
quickRounds(st.configRS.getPrimary(), 5);
assert.eq(stopped, Number(status().numBalancerRounds));
point.off();

// The action log knows of both.
const actions = st.s.getDB("config").actionlog;
assert.gte(actions.find({what: "balancer.start"}).itcount(), 1);
assert.gte(actions.find({what: "balancer.stop"}).itcount(), 1);

// Settings are changed by writing them; bad ones are refused.
assert.commandWorked(settings.update({_id: "chunksize"}, {$set: {value: 2}}, {upsert: true}));
assert.commandWorked(st.s.adminCommand({shardCollection: "b.c", key: {_id: 1}}));
const compliance = assert.commandWorked(admin.runCommand({balancerCollectionStatus: "b.c"}));
assert.eq(2, Number(compliance.chunkSize));
assert.eq(true, compliance.balancerCompliant);
assert(!("firstComplianceViolation" in compliance), tojson(compliance));
assert.commandFailedWithCode(settings.update({_id: "chunksize"}, {$set: {value: 100000}}), 121);
assert.commandFailedWithCode(settings.update({_id: "chunksize"}, {$set: {value: "big"}}), 121);
assert.eq(2, settings.findOne({_id: "chunksize"}).value);
const windowOf = (start, stop) => settings.update({_id: "balancer"}, {$set: {activeWindow: {start: start, stop: stop}}});
assert.commandWorked(windowOf("23:30", "6:05"));
for (const unreadable of ["9pm", "24:00", "6", "06:60", ""]) {
    assert.commandFailedWithCode(windowOf(unreadable, "7:00"), 121, unreadable);
}
assert.docEq({start: "23:30", stop: "6:05"}, settings.findOne({_id: "balancer"}).activeWindow);
assert.commandWorked(settings.update({_id: "balancer"}, {$unset: {activeWindow: 1}}));

// Not on a shard, not on another database.
assert.commandFailed(st.shard0.adminCommand({balancerStatus: 1}));
assert.commandFailedWithCode(st.s.getDB("b").runCommand({balancerStatus: 1}), 13);
assert.commandFailedWithCode(admin.runCommand({balancerCollectionStatus: "b.absent"}), 118);
assert.commandFailedWithCode(admin.runCommand({balancerCollectionStatus: 1}), 14);
assert.commandFailedWithCode(admin.runCommand({balancerCollectionStatus: "b.c", unknownField: 1}), 40415);
const configure = (fields) => admin.runCommand(Object.assign({configureCollectionBalancing: "b.c"}, fields));
for (const fields of [{chunkSize: "5"}, {chunkSize: true}, {defragmentCollection: 1}, {enableAutoMerger: "no"}]) {
    assert.commandFailedWithCode(configure(fields), 14, tojson(fields));
}
st.stop();
