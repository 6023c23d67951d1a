/**
 * An index is made when the members of its commit quorum have what it is built of, and not before, so that none of them falls behind
 * over it. It fails if a build does not wait for the quorum that it names or has by default, if setIndexCommitQuorum does not
 * reach a build that waits, or if a quorum that cannot be is taken.
 *
 * @tags: [requires_own_servers]
 */
import {funWithArgs} from "jstests/libs/parallel_shell_helpers.js";
import {hold, holdBehind, insert, letGo, reconfig, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {members: {2: {priority: 0, tags: {dc: "b"}}}});
assert.commandWorked(reconfig(rst, (config) => config.settings.getLastErrorModes = {far: {dc: 1}}));
const [primary, last] = [rst.getPrimary(), rst.nodes[2]];
const db = primary.getDB("test");
const spec = (field) => ({key: {[field]: 1}, name: field});
const create = (field, more) => db.runCommand(Object.assign({createIndexes: "c", indexes: [spec(field)]}, more));
const setQuorum = (names, quorum) => db.runCommand({setIndexCommitQuorum: "c", indexNames: names, commitQuorum: quorum});
const has = (field) => db.c.getIndexes().some((i) => i.name === field);
assert.commandWorked(insert(primary, [{_id: 1, a: 1}], {w: 3, wtimeout: 60000}));

// What a quorum may be.
for (const [quorum, code] of [[-1, 9], [51, 9], ["", 9], [true, 14], [4, 278], ["nowhere", 79]]) {
    assert.commandFailedWithCode(create("bad", {commitQuorum: quorum}), code, tojson(quorum));
    assert.commandFailedWithCode(setQuorum(["bad"], quorum), [code, 27], tojson(quorum));
}
assert.commandFailedWithCode(setQuorum(["a"], "majority"), 27);
assert.commandFailedWithCode(setQuorum([1], "majority"), 14);
assert.commandFailedWithCode(db.runCommand({setIndexCommitQuorum: "c", commitQuorum: 1}), 40414);
assert.commandFailedWithCode(db.runCommand({setIndexCommitQuorum: "none", indexNames: ["a"], commitQuorum: 1}), 26);
assert.commandFailedWithCode(last.getDB("test").runCommand({setIndexCommitQuorum: "c", indexNames: ["a"], commitQuorum: 1}), 10107);
assert.eq("votingMembers", assert.commandWorked(create("all")).commitQuorum);
assert.eq(2, assert.commandWorked(create("two", {commitQuorum: 2})).commitQuorum);

// One member stays behind: what does not need it is built.
holdBehind(primary, [last]);
assert.commandWorked(insert(primary, [{_id: 2, a: 2}]));
const w1 = {writeConcern: {w: 1}};
for (const quorum of [0, 1, 2, "majority"]) {
    assert.commandWorked(create("enough_" + quorum, Object.assign({commitQuorum: quorum}, w1)));
}
function begin(field, quorum) {
    const join = startParallelShell(funWithArgs((command) => {
        const reply = db.getSiblingDB("test").runCommand(command);
        assert(reply.ok || reply.code === 11601 || reply.code === 276, tojson(reply));
        return reply.ok ? 0 : quit(reply.code === 276 ? 76 : 61);
    }, Object.assign({createIndexes: "c", indexes: [spec(field)]}, quorum && {commitQuorum: quorum}, w1)), primary.port, undefined, "--quiet");
    let op;
    assert.soon(() => op = primary.getDB("admin").aggregate(
        [{$currentOp: {}}, {$match: {"command.createIndexes": "c"}}]).toArray()[0], "the build does not wait");
    // It is registered before its documents are read.
    assert.soon(() => setQuorum([field], 4).code === 278);
    return {join: join, opid: op.opid};
}
// By default and by number, by name of a concern; and let go by another quorum.
for (const [quorum, other] of [[undefined, "majority"], [3, 2], ["far", 1]]) {
    const field = "waits_" + quorum;
    const build = begin(field, quorum);
    assert(!has(field));
    assert.commandFailedWithCode(setQuorum([field, "more"], 1), 27);
    assert.commandFailedWithCode(setQuorum([field], 0), 2);
    assert.commandFailedWithCode(setQuorum([field], "nowhere"), 79);
    assert(!has(field));
    assert.commandWorked(setQuorum([field], other));
    build.join();
    assert(has(field));
}
// By the member itself, by the end of the operation, and by that of the collection.
let build = begin("killed");
assert.commandWorked(primary.adminCommand({killOp: 1, op: build.opid}));
assert.eq(61, build.join({checkExitSuccess: false}));
assert(!has("killed"));
build = begin("later");
letGo(last);
build.join();
assert(has("later"));
rst.awaitReplication();
last.setSecondaryOk();
assert.sameMembers(db.c.getIndexes().map((i) => i.name), last.getDB("test").c.getIndexes().map((i) => i.name));
const point = hold(last);
assert.commandWorked(insert(primary, [{_id: 3}]));
point.wait();
build = begin("dropped");
assert.commandWorked(db.runCommand(Object.assign({drop: "c"}, w1)));
assert.eq(76, build.join({checkExitSuccess: false}));
letGo(last);
rst.stopSet();
