// Waiting for operations that $currentOp shows.
const kTimeoutMS = 5 * 60 * 1000;

function find(db, filter, { localOps = true, allUsers = true } = {}) {
    const router = db.getSiblingDB("admin").runCommand({ hello: 1 }).msg === "isdbgrid";
    const stage = { $currentOp: { allUsers, ...(router ? { localOps } : {}) } };
    return db.getSiblingDB("admin").aggregate([stage, { $match: filter }]).toArray();
}
// The operations that match, once there are any.
export function waitForCurOpByFilter(db, filter, options) {
    let found = [];
    assert.soon(() => (found = find(db, filter, options)).length > 0,
        () => `no operation matches ${tojson(filter)}: ${tojson(find(db, {}, options))}`, kTimeoutMS);
    return found;
}
const atFailPoint = (name, filter) => ({ $and: [{ $or: [{ failpointMsg: name }, { msg: name }] }, filter] });

export const waitForCurOpByFailPoint = (db, ns, name, filter = {}, options) =>
    waitForCurOpByFilter(db, atFailPoint(name, { ns: String(ns), ...filter }), options);
export const waitForCurOpByFailPointNoNS = (db, name, filter = {}, options) =>
    waitForCurOpByFilter(db, atFailPoint(name, filter), options);
