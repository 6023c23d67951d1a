/**
 * With settings.chainingAllowed: false every secondary follows the primary itself, also the next one: lag does not add up along a
 * chain. It fails if a secondary goes on following another secondary.
 *
 * @tags: [requires_own_servers]
 */
import {insert, reconfig, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const source = (node) => assert.commandWorked(node.adminCommand({replSetGetStatus: 1})).syncSourceHost;
/** Writes until each of the members follows that one: a source is chosen when something comes. */
function awaitSources(members, wanted) {
    const primary = rst.getPrimary();
    assert.soon(() => {
        assert.commandWorked(insert(primary, [{}]));
        return members.every((node) => source(node) === wanted.host);
    }, () => tojson(members.map(source)));
}

const [one, two] = rst.getSecondaries();
// One that follows nobody yet, or the other, is left at once.
for (const [node, wanted] of [[one, rst.getPrimary()], [two, one]]) {
    assert.commandWorked(node.adminCommand({replSetSyncFrom: wanted.host}));
    awaitSources([node], wanted);
}
assert.commandWorked(reconfig(rst, (config) => { config.settings.chainingAllowed = false; }));
awaitSources([one, two], rst.getPrimary());

const old = rst.getPrimary();
rst.stepUp(one);
rst.awaitNodesAgreeOnPrimary(60000, rst.nodes, one);
rst.awaitSecondaryNodes();
awaitSources([old, two], one);
assert.commandWorked(insert(one, [{_id: "last"}], {w: 3}));
rst.checkReplicatedDataHashes();
rst.stopSet();
