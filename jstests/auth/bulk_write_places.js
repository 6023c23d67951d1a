/**
 * bulkWrite says by numbers where it writes; every number that is taken for a place is asked about.
 * It fails if a user writes where it may not because the place is a fraction or of another type.
 *
 * @tags: [requires_own_servers]
 */
import {makeUser, startWithRoot} from "jstests/auth/libs/nodes.js";

const {conn, root} = startWithRoot();
const u = makeUser(root, "u", [], [{resource: {db: "d", collection: "open"}, actions: ["insert"]}]).getDB("admin");
const write = (place, ns) => u.runCommand({bulkWrite: 1, ops: [{insert: place, document: {x: 1}}], nsInfo: [{ns}]});
const places = [0, NumberInt(0), NumberLong(0), 0.5, -0.5, NumberDecimal("0"), NumberDecimal("0.4"), NaN];
for (const place of places) {
    for (const ns of ["d.secret", "admin.system.users"]) {
        assert.commandFailedWithCode(write(place, ns), ErrorCodes.Unauthorized, () => tojson(place));
    }
    assert.commandWorked(write(place, "d.open"), () => tojson(place));
}
assert.eq(0, root.getDB("d").secret.find().itcount());
assert.eq(places.length, root.getDB("d").open.find().itcount());
MongoRunner.stopMongod(conn);
