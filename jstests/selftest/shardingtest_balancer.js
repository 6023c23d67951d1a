/**
 * The balancer is off unless asked for; its helpers start it, wait for its rounds and stop it.
 * It fails if a cluster balances behind a test's back, or if a wait for a round returns without one.
 *
 * @tags: [requires_own_servers]
 */
import { ShardingTest } from "jstests/libs/shardingtest.js";
import { configureFailPoint } from "jstests/libs/fail_point_util.js";

const st = new ShardingTest({ shards: 2, other: { chunkSize: 1 } });
globalThis.db = st.s.getDB("test");
const rounds = () => Number(st.s.adminCommand({ balancerStatus: 1 }).numBalancerRounds);
assert.eq(false, sh.getBalancerState());
assert.eq(false, st.isAnyBalanceInFlight());

const fast = configureFailPoint(st.configRS.getPrimary(), "overrideBalanceRoundInterval", { intervalMs: 50 });
st.startBalancer();
assert.eq(true, st.isBalancerEnabled());
assert.eq(true, sh.getBalancerState());
st.waitForBalancer(true);
const before = rounds();
st.awaitBalancerRound();
assert.gt(rounds(), before);
sh.awaitBalancerRound();
st.stopBalancer();
const after = rounds();
sleep(200);
assert.eq(after, rounds(), "stopped means no more rounds");
fast.off();

// Collections may be left out.
assert.commandWorked(st.s.adminCommand({ shardCollection: "test.c", key: { _id: 1 } }));
assert.commandWorked(sh.disableBalancing("test.c"));
assert.eq(true, st.config.collections.findOne({ _id: "test.c" }).noBalance);
globalThis.db = undefined;
assert.commandWorked(sh.enableBalancing(st.s.getDB("test").c), "a collection brings its own connection");
globalThis.db = st.s.getDB("test");
assert.eq(false, st.config.collections.findOne({ _id: "test.c" }).noBalance);
assert.eq(true, sh.balancerCollectionStatus("test.c").balancerCompliant);
st.stop();
