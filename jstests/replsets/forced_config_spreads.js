/**
 * A forced configuration reaches the members that live, whatever the term of theirs, and stays in force when they start again.
 * It fails if a member keeps the configuration before, or a forced one is taken for one of a term.
 *
 * @tags: [requires_own_servers]
 */
import {startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2, {settings: {electionTimeoutMillis: 1000}});
const current = (node) => assert.commandWorked(node.adminCommand({replSetGetConfig: 1})).config;
let config = current(rst.getPrimary());
assert.gte(config.term, 1);
config.version++;
config.members[0].tags = {forced: "yes"};
assert.commandWorked(rst.getPrimary().adminCommand({replSetReconfig: config, force: true}));
const forced = current(rst.getPrimary());
assert(!("term" in forced) || forced.term === -1, tojson(forced));
for (const node of rst.nodes) {
    assert.soon(() => current(node).version === forced.version, () => tojson(current(node)));
    assert.docEq({forced: "yes"}, current(node).members[0].tags);
}

rst.nodes.forEach((node) => rst.restart(rst.getNodeId(node)));
const primary = rst.getPrimary();
assert.eq(forced.version, current(primary).version);
// A safe change gives it a term again.
config = current(primary);
config.version++;
config.members[0].tags = {};
assert.soon(() => primary.adminCommand({replSetReconfig: config, maxTimeMS: 60000}).ok === 1);
for (const node of rst.nodes) {
    assert.soon(() => current(node).version === config.version && current(node).term >= 1, () => tojson(current(node)));
}
rst.stopSet();
