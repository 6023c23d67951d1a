/** Sets of several members for tests of this directory. */

/** A started set with its secondaries up, of members with these options; elections happen within two seconds. */
export function startedSet(nodes, {members = {}, settings = {}, more = {}, prepare = () => {}} = {}) {
    const rst = new ReplSetTest(Object.assign({nodes: nodes, settings: Object.assign({electionTimeoutMillis: 2000}, settings)}, more));
    rst.startSet();
    const config = rst.getReplSetConfig();
    Object.entries(members).forEach(([id, options]) => Object.assign(config.members[id], options));
    prepare(config);
    rst.initiate(config);
    rst.getPrimary();
    rst.awaitSecondaryNodes();
    return rst;
}

/**
 * Keeps a member from applying what it fetches, until it is let go. Returns the fail point, by which to wait until it has fetched. What follows
 * that it asks for then: nothing is sent to it meanwhile.
 */
export function hold(node) {
    assert.commandWorked(node.adminCommand({setParameter: 1, oplogFetcherUsesExhaust: false}));
    return configureFailPoint(node, "rsSyncApplyStop");
}
/** Holds members when each has fetched something more: the document, or what was on its way before. They fetch nothing that follows. */
export function holdBehind(primary, members, name = "c") {
    const points = members.map(hold);
    const command = {insert: name, documents: [{_id: "on its way"}], writeConcern: {w: 1}};
    assert.commandWorked(primary.getDB("test").runCommand(command));
    points.forEach((point) => point.wait());
}
export function letGo(node) {
    assert.commandWorked(node.adminCommand({configureFailPoint: "rsSyncApplyStop", mode: "off"}));
}

/**
 * The members, that one first which has most: none of them refuses it a vote. What one took before it was told to stop, the others
 * would not be without.
 */
export function byPosition(members) {
    const applied = (node) => assert.commandWorked(node.adminCommand({replSetGetStatus: 1})).optimes.appliedOpTime;
    return [...members].sort((a, b) => rs.compareOpTimes(applied(b), applied(a)));
}
/** Has that one of the members elected that has most; returns it once it takes writes. */
export function elect(rst, members) {
    return rst.stepUpNoAwaitReplication(byPosition(members)[0]);
}

/** Inserts documents on the primary with a write concern; returns the reply. */
export function insert(node, documents, writeConcern = {w: 1}) {
    return node.getDB("test").runCommand({insert: "c", documents: documents, writeConcern: writeConcern});
}

/** What a member itself has of a collection, in order of `_id`. */
export function held(node, name = "c") {
    node.setSecondaryOk();
    return node.getDB("test")[name].find().sort({_id: 1}).toArray();
}

/** Changes the configuration through the primary, as soon as no other change is under way. */
export function reconfig(rst, change, options = {}) {
    let reply;
    assert.soon(() => {
        const primary = rst.getPrimary();
        const config = assert.commandWorked(primary.adminCommand({replSetGetConfig: 1})).config;
        change(config);
        config.version++;
        reply = primary.adminCommand(Object.assign({replSetReconfig: config, maxTimeMS: 30000}, options));
        return reply.code !== ErrorCodes.ConfigurationInProgress;
    });
    return reply;
}

/** The row of a member in what another says of the set. */
export function row(asked, node) {
    return assert.commandWorked(asked.adminCommand({replSetGetStatus: 1})).members.find((m) => m.name === node.host);
}
