/**
 * A hidden member copies everything and is shown to no client. It fails if drivers are told of it, or if it lacks documents.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {members: {2: {hidden: true, priority: 0}}});
const hidden = rst.nodes[2];
assert.commandWorked(insert(rst.getPrimary(), [{_id: 1}], {w: 3, wtimeout: 30000}));
assert.eq([{_id: 1}], held(hidden));
for (const node of rst.nodes) {
    const hello = assert.commandWorked(node.adminCommand({hello: 1}));
    assert(!hello.hosts.includes(hidden.host) && !(hello.passives || []).includes(hidden.host), tojson(hello));
}
const own = assert.commandWorked(hidden.adminCommand({hello: 1}));
assert.eq([true, true], [own.hidden, own.secondary], tojson(own));
assert.eq(3, assert.commandWorked(rst.getPrimary().adminCommand({replSetGetStatus: 1})).members.length);
rst.stopSet();
