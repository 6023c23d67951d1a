/**
 * A delayed member that votes counts toward a majority only once it has applied: with the other member gone a majority write takes
 * as long as the delay. It fails if what the member holds back counts as replicated, or if it never counts.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, startedSet} from "jstests/replsets/libs/members.js";

const delay = {secondaryDelaySecs: 3, hidden: true, priority: 0};
const rst = startedSet(3, {members: {2: delay}, settings: {electionTimeoutMillis: 10000}});
const [primary, delayed] = [rst.getPrimary(), rst.nodes[2]];
const other = rst.nodes.find((node) => node !== primary && node !== delayed);
assert.commandWorked(insert(primary, [{_id: 1}], {w: "majority", wtimeout: 60000}));
rst.stop(other);
const reply = insert(primary, [{_id: 2}], {w: "majority", wtimeout: 200});
assert.eq(ErrorCodes.WriteConcernFailed, assert.commandWorkedIgnoringWriteConcernErrors(reply).writeConcernError.code);
const began = Date.now();
assert.commandWorked(insert(primary, [{_id: 3}], {w: "majority", wtimeout: 60000}));
assert.gte(Date.now() - began, 1500);
assert.eq([1, 2, 3], held(delayed).map((d) => d._id));
rst.stopSet();
