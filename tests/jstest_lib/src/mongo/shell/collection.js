// Collections.
DBCollection.prototype.getName = function() {
    return this._shortName;
};
DBCollection.prototype.getFullName = function() {
    return this._fullName;
};
DBCollection.prototype.getDB = function() {
    return this._db;
};
DBCollection.prototype.find = function(query, fields) {
    return new DBQuery(this._mongo, this._db, this, this._fullName, query || {}, fields || null, 0, 0, 0, 0);
};
DBCollection.prototype.insertMany = function(documents) {
    return assert.commandWorked(this._db.runCommand({insert: this._shortName, documents}));
};
DBCollection.prototype.drop = function() {
    return this._db.runCommand({drop: this._shortName}).ok === 1;
};
