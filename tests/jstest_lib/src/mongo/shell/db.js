// Databases: what `db.name` finds is a collection, by the hook of the native constructor.
DB.prototype.getName = function() {
    return this._name;
};
DB.prototype.getMongo = function() {
    return this._mongo;
};
DB.prototype.getCollection = function(name) {
    return new DBCollection(this._mongo, this, name, this._name + "." + name);
};
DB.prototype.runCommand = function(command) {
    return this._mongo.runCommand(this._name, command, 0);
};
