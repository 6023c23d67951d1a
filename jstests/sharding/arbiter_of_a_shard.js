/**
 * An arbiter changes for which members a write waits that names no concern. Of a shard it is the cluster that says what holds instead,
 * since a shard has no defaults of its own.
 * It fails if a shard can be given an arbiter only by force, or without that anybody has said what holds.
 *
 * @tags: [requires_own_servers]
 */
import {reconfig} from "jstests/replsets/libs/members.js";

const st = new ShardingTest({shards: 1, rs: {nodes: 2}});
const rst = st.rs0;
const arbiter = {_id: 7, host: rst.add({shardsvr: ""}).host, arbiterOnly: true};
const add = () => reconfig(rst, (config) => config.members.push(arbiter));
// The launcher may have set one.
const set = () => assert.commandWorked(st.s.adminCommand({getDefaultRWConcern: 1})).defaultWriteConcernSource === "global";
if (!set()) {
    assert.commandFailedWithCode(add(), ErrorCodes.NewReplicaSetConfigurationIncompatible);
}
assert.commandWorked(st.s.adminCommand({setDefaultRWConcern: 1, defaultWriteConcern: {w: "majority"}}));
assert.commandWorked(add());
assert.soon(() => rst.getPrimary().adminCommand({hello: 1}).arbiters.length === 1);
assert.commandWorked(st.s.getDB("d").c.insert({_id: 1}));
st.stop({skipCheckDBHashes: true});
