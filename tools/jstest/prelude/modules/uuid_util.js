// The UUIDs of collections.
export function getUUIDFromListCollections(db, name) {
    const [info] = db.getCollectionInfos({ name });
    assert(info !== undefined, `no collection ${db.getName()}.${name}`);
    return info.info.uuid;
}
export function getUUIDFromConfigCollections(mongos, ns) {
    return mongos.getDB("config").collections.findOne({ _id: ns }).uuid;
}
// The text between the quotes of UUID("...").
export function extractUUIDFromObject(uuid) {
    return /"([^"]*)"/.exec(uuid.toString())[1];
}
