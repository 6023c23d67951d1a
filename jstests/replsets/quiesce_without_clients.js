/**
 * Members that have no clients to let go end as soon as they are told to: arbiters, those that are out of service, a primary that
 * nobody can follow. A signalled primary whose configuration is being changed waits for that, and hands the lead over then.
 * It fails if one of the first serves on for as long as a secondary would, or if the last goes without a successor.
 *
 * @tags: [requires_own_servers]
 */
import {holdBehind, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const served = {setParameter: {shutdownTimeoutMillisForSignaledShutdown: 3600 * 1000}};
const more = {nodeOptions: served};
const settings = {electionTimeoutMillis: 60000};

let rst = startedSet(3, {members: {2: {arbiterOnly: true}}, settings, more});
const [primary, secondary] = [rst.getPrimary(), rst.getSecondary()];
rst.stop(rst.nodes[2], 15);
assert.commandWorked(secondary.adminCommand({replSetMaintenance: 1}));
rst.stop(secondary, 15);
assert.soon(() => assert.commandWorked(primary.adminCommand({replSetGetStatus: 1})).members.filter((m) => m.health === 1).length === 1);
rst.stop(primary, 15);

rst = startedSet(3, {settings, more});
const old = rst.getPrimary();
const others = rst.getSecondaries();
// Nothing is committed, so that a change of the configuration waits.
holdBehind(old, others);
const change = startParallelShell(() => {
    const config = assert.commandWorked(db.adminCommand({replSetGetConfig: 1})).config;
    config.version++;
    db.adminCommand({replSetReconfig: config, maxTimeMS: 600000});
}, old.port);
assert.soon(() => old.getDB("admin").aggregate([{$currentOp: {}}, {$match: {"command.replSetReconfig": {$exists: true}}}]).itcount() > 0);
rst.stop(old, 15, {}, {waitpid: false});
others.forEach(letGo);
change();
assert.soon(() => others.some((node) => node.adminCommand({hello: 1}).isWritablePrimary), "nobody has taken over", 30000);
assert.commandFailedWithCode(old.adminCommand({hello: 1}), ErrorCodes.ShutdownInProgress);
rst.stop(old, 15);
others.forEach((node) => assert.commandWorked(node.adminCommand({setParameter: 1, shutdownTimeoutMillisForSignaledShutdown: 0})));
rst.stopSet(undefined, false, {skipCheckDBHashes: true});
