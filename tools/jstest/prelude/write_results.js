// Results of writes as the shell shows them: what a write did, and what of it failed.
//
// `BulkWriteResult` is the general form; a single write shows the same result as a `WriteResult`. A bulk with errors
// throws a `BulkWriteError`; a command that failed as a whole is a `WriteCommandError`.
(function (global) {
    "use strict";

    const members = (text, value) => text + "(" + value + ")";

    /** How long a write waits and for what: `{w, j, wtimeout, fsync}`, or these as arguments. */
    global.WriteConcern = class WriteConcern {
        constructor(concern, wtimeout, j) {
            const given = concern !== null && typeof concern === "object" ? concern : {w: concern, wtimeout, j};
            this._wc = {};
            for (const name of ["w", "j", "wtimeout", "fsync", "provenance"]) {
                if (given[name] !== undefined) this._wc[name] = given[name];
            }
            const w = this._wc.w;
            if (w !== undefined && !["number", "string", "object"].includes(typeof w))
                throw new Error("w value must be a number, a string or a document but was found to be a " + typeof w);
        }

        toJSON() {
            return Object.assign({}, this._wc);
        }

        tojson(indent, nolint, depth) {
            return tojsonObject(this._wc, indent, nolint, depth);
        }

        toString() {
            return members("WriteConcern", tojson(this._wc));
        }

        shellPrint() {
            print(this.toString());
        }
    };

    /** The error of one statement, with the statement. */
    global.WriteError = class WriteError extends Error {
        constructor(error) {
            super(error.errmsg);
            Object.defineProperty(this, "name", {value: "WriteError", enumerable: false});
            this.code = error.code;
            this.index = error.index;
            this.errmsg = error.errmsg;
            if (error.errInfo !== undefined) this.errInfo = error.errInfo;
            Object.defineProperty(this, "_raw", {value: error, enumerable: false});
        }

        getOperation() {
            return this._raw.op;
        }

        toJSON() {
            const shown = {index: this.index, code: this.code, errmsg: this.errmsg, op: this._raw.op};
            if (this.errInfo !== undefined) shown.errInfo = this.errInfo;
            return shown;
        }

        tojson(indent, nolint, depth) {
            return tojsonObject(this.toJSON(), indent, nolint, depth);
        }

        toString() {
            return members("WriteError", tojson(this.toJSON()));
        }

        shellPrint() {
            print(this.toString());
        }
    };

    /** A write that was done, but not confirmed as its write concern asked. */
    global.WriteConcernError = class WriteConcernError extends Error {
        constructor(error) {
            super(error.errmsg);
            Object.defineProperty(this, "name", {value: "WriteConcernError", enumerable: false});
            this.code = error.code;
            this.errmsg = error.errmsg;
            if (error.codeName !== undefined) this.codeName = error.codeName;
            if (error.errInfo !== undefined) this.errInfo = error.errInfo;
        }

        toJSON() {
            const shown = {code: this.code, errmsg: this.errmsg};
            if (this.codeName !== undefined) shown.codeName = this.codeName;
            if (this.errInfo !== undefined) shown.errInfo = this.errInfo;
            return shown;
        }

        tojson(indent, nolint, depth) {
            return tojsonObject(this.toJSON(), indent, nolint, depth);
        }

        toString() {
            return members("WriteConcernError", tojson(this.toJSON()));
        }

        shellPrint() {
            print(this.toString());
        }
    };

    /** A write command that failed as a whole; nothing of it was tried. */
    global.WriteCommandError = class WriteCommandError extends Error {
        constructor(reply) {
            super(reply.errmsg);
            Object.defineProperty(this, "name", {value: "WriteCommandError", enumerable: false});
            this.ok = 0;
            this.code = reply.code;
            this.errmsg = reply.errmsg;
            if (reply.codeName !== undefined) this.codeName = reply.codeName;
            if (reply.errorLabels !== undefined) this.errorLabels = reply.errorLabels;
            Object.defineProperty(this, "_raw", {value: reply, enumerable: false});
            Object.defineProperty(this, "_commandObj", {value: reply._commandObj, enumerable: false});
        }

        getRawResponse() {
            return this._raw;
        }

        hasWriteError() {
            return false;
        }

        hasWriteConcernError() {
            return false;
        }

        toSingleResult() {
            return this;
        }

        tojson(indent, nolint, depth) {
            return tojsonObject(this._raw, indent, nolint, depth);
        }

        toString() {
            return members("WriteCommandError", tojson(this._raw));
        }

        shellPrint() {
            print(this.toString());
        }
    };

    const COUNTS = ["nInserted", "nUpserted", "nMatched", "nModified", "nRemoved"];

    function hasLabel(labels, label) {
        return Array.isArray(labels) && labels.includes(label);
    }

    // A result shows the counts it was made with, whatever the test does with the raw form afterwards.
    function takeCounts(result, counts) {
        result.ok = counts.ok === undefined ? 1 : counts.ok;
        for (const name of COUNTS) result[name] = counts[name] || 0;
    }

    /** What a bulk (or any list of writes) did. */
    global.BulkWriteResult = class BulkWriteResult {
        constructor(raw, singleBatchType, writeConcern) {
            takeCounts(this, raw);
            hide(this, {_raw: raw, _type: singleBatchType, _writeConcern: writeConcern});
        }

        getUpsertedIds() {
            return this._raw.upserted;
        }

        /** For each inserted document, its place in the list and its `_id`. */
        getInsertedIds() {
            return this._raw.insertedIds;
        }

        getUpsertedIdAt(index) {
            return this._raw.upserted[index];
        }

        getRawResponse() {
            return this._raw;
        }

        hasWriteErrors() {
            return this._raw.writeErrors.length > 0;
        }

        getWriteErrorCount() {
            return this._raw.writeErrors.length;
        }

        getWriteErrorAt(index) {
            return this._raw.writeErrors[index];
        }

        getWriteErrors() {
            return this._raw.writeErrors;
        }

        hasWriteConcernError() {
            return this._raw.writeConcernErrors.length > 0;
        }

        /** One error for all batches' errors about the write concern. */
        getWriteConcernError() {
            const errors = this._raw.writeConcernErrors;
            if (errors.length === 0) return null;
            if (errors.length === 1) return errors[0];
            const codes = [...new Set(errors.map(error => error.code))];
            return new WriteConcernError({
                code: codes.length === 1 ? codes[0] : 64, errmsg: errors.map(error => error.errmsg).join("  and   "),
            });
        }

        hasErrorLabel(label) {
            return hasLabel(this._raw.errorLabels, label);
        }

        toError() {
            return new BulkWriteError(this, this._type, this._writeConcern, "write error" + (this.getWriteErrorCount() > 1 ? "s" : "") +
                " " + describeErrors(this));
        }

        toSingleResult() {
            return new WriteResult(this, this._type, this._writeConcern);
        }

        toResult() {
            return this;
        }

        tojson(indent, nolint, depth) {
            return tojsonObject(rawView(this._raw), indent, nolint, depth);
        }

        toString() {
            return members("BulkWriteResult", tojson(rawView(this._raw)));
        }

        shellPrint() {
            print(this.toString());
        }
    };

    function describeErrors(result) {
        if (result.getWriteErrorCount() > 0) return "in bulk operation, first is: " + result.getWriteErrorAt(0).errmsg;
        const concern = result.getWriteConcernError();
        return concern ? "about the write concern: " + concern.errmsg : "in bulk operation";
    }

    function rawView(raw) {
        const shown = {writeErrors: raw.writeErrors, writeConcernErrors: raw.writeConcernErrors};
        for (const name of COUNTS) shown[name] = raw[name];
        shown.upserted = raw.upserted;
        return shown;
    }

    function hide(object, values) {
        for (const name of Object.keys(values))
            Object.defineProperty(object, name, {value: values[name], writable: true, configurable: true, enumerable: false});
    }

    /** A list of writes of which some failed. */
    global.BulkWriteError = class BulkWriteError extends Error {
        constructor(result, singleBatchType, writeConcern, message) {
            super(message || "unknown bulk write error");
            Object.defineProperty(this, "name", {value: "BulkWriteError", enumerable: false});
            takeCounts(this, result);
            const first = result.hasWriteErrors() ? result.getWriteErrorAt(0) : result.getWriteConcernError();
            if (first) this.code = first.code;
            if (result._raw.errorLabels !== undefined) this.errorLabels = result._raw.errorLabels;
            hide(this, {_result: result, _raw: result._raw, writeErrors: result._raw.writeErrors});
        }

        toResult() {
            return this._result;
        }

        toSingleResult() {
            return this._result.toSingleResult();
        }

        tojson(indent, nolint, depth) {
            return tojsonObject(rawView(this._raw), indent, nolint, depth);
        }

        toString() {
            return members("BulkWriteError", tojson(rawView(this._raw)));
        }

        shellPrint() {
            print(this.toString());
        }
    };
    for (const name of ["getInsertedIds", "getUpsertedIds", "getUpsertedIdAt", "getRawResponse", "hasWriteErrors", "getWriteErrorCount",
        "getWriteErrorAt", "getWriteErrors", "hasWriteConcernError", "getWriteConcernError", "hasErrorLabel"]) {
        Object.defineProperty(BulkWriteError.prototype, name, {
            value(...args) {
                return this._result[name](...args);
            },
            writable: true, configurable: true, enumerable: false,
        });
    }

    const INSERT = 1, UPDATE = 2, REMOVE = 3;
    global._batchTypes = {INSERT, UPDATE, REMOVE};

    /** What one insert, update or remove did. */
    global.WriteResult = class WriteResult {
        constructor(result, type, writeConcern) {
            takeCounts(this, result);
            hide(this, {_raw: result.getRawResponse(), _type: type, _writeConcern: writeConcern});
            const errors = this._raw.writeErrors;
            if (errors.length > 0) hide(this, {code: errors[0].code, errmsg: errors[0].errmsg});
        }

        getUpsertedId() {
            const upserted = this._raw.upserted;
            return upserted.length === 0 ? undefined : upserted[upserted.length - 1];
        }

        getRawResponse() {
            return this._raw;
        }

        hasWriteError() {
            return this._raw.writeErrors.length > 0;
        }

        hasWriteErrors() {
            return this.hasWriteError();
        }

        getWriteError() {
            return this._raw.writeErrors.length === 0 ? undefined : this._raw.writeErrors[0];
        }

        hasWriteConcernError() {
            return this._raw.writeConcernErrors.length > 0;
        }

        getWriteConcernError() {
            return this._raw.writeConcernErrors.length === 0 ? undefined : this._raw.writeConcernErrors[0];
        }

        hasErrorLabel(label) {
            return hasLabel(this._raw.errorLabels, label);
        }

        toSingleResult() {
            return this;
        }

        _shown() {
            const shown = {};
            if (this._type === INSERT) {
                shown.nInserted = this.nInserted;
            } else if (this._type === UPDATE) {
                Object.assign(shown, {nMatched: this.nMatched, nUpserted: this.nUpserted, nModified: this.nModified});
                const upserted = this.getUpsertedId();
                if (upserted) shown._id = upserted._id;
            } else {
                shown.nRemoved = this.nRemoved;
            }
            if (this.hasWriteError()) {
                const {code, errmsg, errInfo} = this.getWriteError();
                shown.writeError = errInfo === undefined ? {code, errmsg} : {code, errmsg, errInfo};
            }
            if (this.hasWriteConcernError()) shown.writeConcernError = this.getWriteConcernError();
            return shown;
        }

        tojson(indent, nolint, depth) {
            return tojsonObject(this._shown(), indent, nolint, depth);
        }

        toString() {
            return members("WriteResult", tojson(this._shown()));
        }

        shellPrint() {
            print(this.toString());
        }
    };
})(globalThis);
