// Values as text.
var tojson = function(value) {
    if (value === undefined || value === null || typeof value === "number" || typeof value === "boolean") {
        return String(value);
    }
    if (typeof value === "string") {
        return JSON.stringify(value);
    }
    if (typeof value.tojson === "function") {
        return value.tojson();
    }
    if (value instanceof Date) {
        return "ISODate(" + JSON.stringify(value.toISOString()) + ")";
    }
    if (Array.isArray(value)) {
        return "[" + value.map(tojson).join(", ") + "]";
    }
    if (typeof value === "object" && !(value instanceof RegExp)) {
        return "{" + Object.keys(value).map((name) => JSON.stringify(name) + " : " + tojson(value[name])).join(", ") + "}";
    }
    return String(value);
};
