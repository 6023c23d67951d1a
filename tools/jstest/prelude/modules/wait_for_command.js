// Waits until an operation that `matches` runs on the node; returns its opid.
export function waitForCommand(name, matches, db, wanted = {}) {
    let id = -1;
    assert.soon(() => {
        const { inprog } = assert.commandWorked(db.getSiblingDB("admin").runCommand({ currentOp: 1, $all: true, ...wanted }));
        const found = inprog.find((op) => matches(op));
        if (found !== undefined) id = found.opid;
        return found !== undefined;
    }, `no operation '${name}' runs`);
    return id;
}
