// Collections dropped and made anew, each command checked.
export function assertDropCollection(db, name) {
    assert.commandWorkedOrFailedWithCode(db.runCommand({ drop: name }), ErrorCodes.NamespaceNotFound);
}
export function assertCreateCollection(db, name, options = {}) {
    assert.commandWorked(db.createCollection(name, options));
    return db.getCollection(name);
}
export function assertDropAndRecreateCollection(db, name, options) {
    assertDropCollection(db, name);
    return assertCreateCollection(db, name, options);
}
