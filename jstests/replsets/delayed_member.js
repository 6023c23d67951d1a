/**
 * A delayed member has everything as it was some seconds ago. It fails if a write is there at once, or never.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2, {members: {1: {secondaryDelaySecs: 2, hidden: true, priority: 0, votes: 0}}});
const delayed = rst.nodes[1];
const began = Date.now();
assert.commandWorked(insert(rst.getPrimary(), [{_id: 1}]));
assert.soon(() => held(delayed).length === 1);
assert.gte(Date.now() - began, 1000);
assert.eq(2, delayed.adminCommand({hello: 1}).secondaryDelaySecs);
rst.stopSet();
