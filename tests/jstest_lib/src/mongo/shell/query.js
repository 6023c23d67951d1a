// Queries, read through the native cursor of the connection.
DBQuery.prototype._open = function() {
    if (!this._cursor) {
        this._cursor = this._mongo.find(this._ns, this._query, this._fields, this._limit, this._skip, this._batchSize, this._options);
    }
    return this._cursor;
};
DBQuery.prototype.batchSize = function(n) {
    this._batchSize = n;
    return this;
};
DBQuery.prototype.hasNext = function() {
    return this._open().hasNext();
};
DBQuery.prototype.next = function() {
    return this._open().next();
};
DBQuery.prototype.toArray = function() {
    const all = [];
    while (this.hasNext()) {
        all.push(this.next());
    }
    return all;
};
DBQuery.prototype.arrayAccess = function(at) {
    return this.toArray()[at];
};
