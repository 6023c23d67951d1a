/**
 * An arbiter changes for which members a write waits that names no concern: an operator is told before it does. A second one is refused.
 * It fails if a configuration silently takes a majority's guarantee from writers, or if two arbiters elect what one copy has.
 *
 * @tags: [requires_own_servers]
 */
import {reconfig, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2);
const primary = rst.getPrimary();
const arbiter = (id) => ({_id: id, host: rst.add({}).host, arbiterOnly: true});
const [first, second] = [arbiter(2), arbiter(3)];
const add = (member) => reconfig(rst, (config) => config.members.push(member));
assert.commandFailedWithCode(add(first), ErrorCodes.NewReplicaSetConfigurationIncompatible);
const concern = () => assert.commandWorked(primary.adminCommand({getDefaultRWConcern: 1})).defaultWriteConcern;
assert.eq("majority", concern().w);
// Where somebody has said what holds, nothing changes.
assert.commandWorked(primary.adminCommand({setDefaultRWConcern: 1, defaultWriteConcern: {w: "majority"}}));
assert.commandWorked(add(first));
assert.eq("majority", concern().w);
assert.commandFailedWithCode(add(second), ErrorCodes.NewReplicaSetConfigurationIncompatible);
rst.stopSet(undefined, false, {skipCheckDBHashes: true});

const other = new ReplSetTest({nodes: 3});
other.startSet();
const config = other.getReplSetConfig();
[1, 2].forEach((id) => Object.assign(config.members[id], {arbiterOnly: true}));
assert.commandFailedWithCode(
    other.nodes[0].adminCommand({replSetInitiate: config}), ErrorCodes.InvalidReplicaSetConfig);
other.stopSet(undefined, false, {skipCheckDBHashes: true});

// A test may want them.
const several = new ReplSetTest({nodes: 3, nodeOptions: {setParameter: {allowMultipleArbiters: true}}});
several.startSet();
several.initiate(Object.assign({}, config, {
    _id: several.name,
    members: several.getReplSetConfig().members.map((m) => Object.assign(m, m._id > 0 ? {arbiterOnly: true} : {})),
}));
assert.eq(2, several.getPrimary().adminCommand({hello: 1}).arbiters.length);
several.stopSet(undefined, false, {skipCheckDBHashes: true});
