// The parts of a namespace.
export function getDBNameAndCollNameFromFullNamespace(ns) {
    const at = ns.indexOf(".");
    assert(at > 0, `${ns} is no full namespace`);
    return [ns.slice(0, at), ns.slice(at + 1)];
}
export const getDBName = (ns) => getDBNameAndCollNameFromFullNamespace(ns)[0];
export const getCollName = (ns) => getDBNameAndCollNameFromFullNamespace(ns)[1];
