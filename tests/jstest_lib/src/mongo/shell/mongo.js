// Connections.
Mongo.prototype.getDB = function(name) {
    return new DB(this, name);
};
Mongo.prototype.getCollection = function(ns) {
    const at = ns.indexOf(".");
    return this.getDB(ns.slice(0, at)).getCollection(ns.slice(at + 1));
};
Mongo.prototype.adminCommand = function(command) {
    return this.runCommand("admin", command, 0);
};
if (typeof connect === "undefined") {
    globalThis.connect = function(address) {
        const [host, name] = address.replace("mongodb://", "").split("/");
        return new Mongo(host).getDB(name || "test");
    };
}
