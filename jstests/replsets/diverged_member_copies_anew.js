/**
 * A member on which something was changed behind its set's back does not fit an entry of the log sooner or later: it takes no such entry
 * as well as it can, which would leave it different for good, but copies everything anew.
 * It fails if an entry that does not fit is passed over, or if what the member has afterwards is not what the others have.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {settings: {electionTimeoutMillis: 5000}});
let primary = rst.getPrimary();
const test = () => rst.getPrimary().getDB("test");
assert.commandWorked(insert(primary, [{_id: "both"}, {_id: "theirs"}, {_id: "updated"}], {w: 3, wtimeout: 60000}));
assert.commandWorked(test().runCommand({create: "made", writeConcern: {w: 3, wtimeout: 60000}}));
const id = rst.getNodeId(rst.getSecondary());
const all = {w: 3, wtimeout: 60000};
const kinds = [
    // What is done on the member alone, and what the set does then.
    [(c) => c.insert({_id: "stray", of: "nobody"}), {insert: "c", documents: [{_id: "stray", of: "the set"}]}],
    [(c) => c.remove({_id: "updated"}), {update: "c", updates: [{q: {_id: "updated"}, u: {$set: {n: 1}}}]}],
    [(c) => c.remove({_id: "theirs"}), {delete: "c", deletes: [{q: {_id: "theirs"}, limit: 1}]}],
    [(c) => assert(c.getDB().made.drop()), {insert: "made", documents: [{_id: 1}]}],
];
for (const [behind, change] of kinds) {
    const {dbpath, port} = {dbpath: rst.getDbPath(id), port: rst.getPort(id)};
    rst.stop(id, undefined, {skipValidation: true}, {forRestart: true});
    const alone = MongoRunner.runMongod({port, dbpath, noCleanData: true});
    behind(alone.getDB("test").c);
    MongoRunner.stopMongod(alone, undefined, {skipValidation: true});
    const back = rst.start(id, {}, true);
    const copies = () => Number(assert.commandWorked(back.adminCommand({serverStatus: 1})).metrics.repl.initialSync.completed);
    rst.awaitSecondaryNodes();
    assert.eq(0, copies());
    assert.commandWorked(test().runCommand(Object.assign({}, change, {writeConcern: all})));
    assert.soon(() => copies() === 1, () => "it was taken as well as it could be: " + tojson(change));
    rst.awaitSecondaryNodes();
    rst.checkReplicatedDataHashes();
}
rst.stopSet();
