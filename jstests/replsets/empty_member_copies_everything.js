/**
 * A member whose data was lost copies everything again. It fails if it comes back without documents, or votes for having none.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
assert.commandWorked(insert(rst.getPrimary(), [{_id: 1}, {_id: 2}], {w: 3, wtimeout: 20000}));
const id = rst.getNodeId(rst.getSecondary());
rst.stop(id);
assert.commandWorked(insert(rst.getPrimary(), [{_id: 3}], {w: 2, wtimeout: 20000}));
rst.start(id, {}, false);
rst.awaitSecondaryNodes();
rst.awaitReplication();
assert.eq([1, 2, 3], held(rst.nodes[id]).map((d) => d._id));
assert.commandWorked(insert(rst.getPrimary(), [{_id: 4}], {w: 3, wtimeout: 20000}));
rst.checkReplicatedDataHashes();
rst.stopSet();
