// Entries of a database's profile.
const entries = (profileDB, filter) => profileDB.system.profile.find(filter).toArray();
const shown = (profileDB) => tojson(profileDB.system.profile.find().sort({ ts: -1 }).limit(20).toArray());

export function profilerHasNumMatchingEntriesOrThrow({ profileDB, filter, numExpectedMatches }) {
    const found = entries(profileDB, filter).length;
    assert.eq(found, numExpectedMatches, () => `${tojson(filter)} in ${shown(profileDB)}`);
}
export function profilerHasAtLeastNumMatchingEntriesOrThrow({ profileDB, filter, minExpectedMatches }) {
    assert.gte(entries(profileDB, filter).length, minExpectedMatches, () => `${tojson(filter)} in ${shown(profileDB)}`);
}
export function profilerHasAtMostNumMatchingEntriesOrThrow({ profileDB, filter, maxExpectedMatches }) {
    assert.lte(entries(profileDB, filter).length, maxExpectedMatches, () => `${tojson(filter)} in ${shown(profileDB)}`);
}
export const profilerHasSingleMatchingEntryOrThrow = (args) => profilerHasNumMatchingEntriesOrThrow({ ...args, numExpectedMatches: 1 });
export const profilerHasZeroMatchingEntriesOrThrow = (args) => profilerHasNumMatchingEntriesOrThrow({ ...args, numExpectedMatches: 0 });
export const profilerHasAtLeastOneMatchingEntryOrThrow = (args) => profilerHasAtLeastNumMatchingEntriesOrThrow({ ...args, minExpectedMatches: 1 });
export function getProfilerProtocolStringForCommand() {
    return "op_msg";
}
export function getLatestProfilerEntry(db, filter = {}) {
    const [entry] = db.system.profile.find(filter).sort({ $natural: -1 }).limit(1).toArray();
    if (entry === undefined) throw new Error("could not find any entries in the profile collection for " + tojson(filter));
    return entry;
}
