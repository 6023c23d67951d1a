// The BSON types as classes. What an instance holds is opaque and lives in Rust; here are the constructors, which can
// be called with and without `new`, and what instances answer. Methods are not enumerable, so that loops over a
// value's properties see only what the real shell shows.
(function(native) {
"use strict";

function method(prototype, name, value) {
    Object.defineProperty(prototype, name, {value, writable: true, configurable: true});
}
function methods(constructor, members) {
    for (const name of Object.keys(members)) {
        method(constructor.prototype, name, members[name]);
    }
}
function getter(constructor, name, get) {
    Object.defineProperty(constructor.prototype, name, {get, configurable: true, enumerable: false});
}
function fail(message, code = 2) {
    const error = new Error(message);
    error.code = code;
    error.codeName = "BadValue";
    return error;
}

function NumberLong(...args) {
    return native.newLong(new.target ? new.target.prototype : NumberLong.prototype, args);
}
methods(NumberLong, {
    toNumber() { return native.toNumber(this); },
    valueOf() { return native.toNumber(this); },
    toString() { return native.spell(this); },
    tojson() { return native.spell(this); },
    toJSON() { return {$numberLong: native.digits(this)}; },
    compare(other) { return native.compareLongs(this, other); },
    exactValueString() { return native.digits(this); },
});
getter(NumberLong, "floatApprox", function() { return native.toNumber(this); });
getter(NumberLong, "top", function() { return native.longHalf(this, true); });
getter(NumberLong, "bottom", function() { return native.longHalf(this, false); });

function NumberInt(...args) {
    return native.newInt(new.target ? new.target.prototype : NumberInt.prototype, args);
}
methods(NumberInt, {
    toNumber() { return native.toNumber(this); },
    valueOf() { return native.toNumber(this); },
    toString() { return native.spell(this); },
    tojson() { return native.spell(this); },
    toJSON() { return native.toNumber(this); },
});

function NumberDecimal(...args) {
    return native.newDecimal(new.target ? new.target.prototype : NumberDecimal.prototype, args);
}
methods(NumberDecimal, {
    toString() { return native.spell(this); },
    tojson() { return native.spell(this); },
    toJSON() { return {$numberDecimal: native.digits(this)}; },
});

function ObjectId(...args) {
    return native.newObjectId(new.target ? new.target.prototype : ObjectId.prototype, args);
}
methods(ObjectId, {
    toString() { return native.spell(this); },
    tojson() { return native.spell(this); },
    toJSON() { return {$oid: native.digits(this)}; },
    valueOf() { return native.digits(this); },
    equals(other) { return other instanceof ObjectId && this.str === other.str; },
    getTimestamp() { return new Date(parseInt(native.digits(this).slice(0, 8), 16) * 1000); },
});
getter(ObjectId, "str", function() { return native.digits(this); });
method(ObjectId.prototype, "isObjectId", true);

const timestampMax = 0xffffffff;
function timestampPart(value, name) {
    if (value instanceof NumberLong || value instanceof NumberInt) {
        value = value.toNumber();
    }
    if (typeof value !== "number") {
        throw fail("Timestamp " + name + " must be a number");
    }
    const whole = Math.trunc(value);
    if (!(whole >= 0 && whole <= timestampMax)) {
        throw fail("Timestamp " + name + " must be non-negative and not greater than " + timestampMax +
                   ", got value " + value);
    }
    return whole;
}
function Timestamp(...args) {
    if (args.length !== 0 && args.length !== 2) {
        throw fail("Timestamp needs 0 or 2 arguments");
    }
    const made = native.newMarked(new.target ? new.target.prototype : Timestamp.prototype, "Timestamp");
    made.t = args.length === 0 ? 0 : timestampPart(args[0], "time");
    made.i = args.length === 0 ? 0 : timestampPart(args[1], "increment");
    return made;
}
methods(Timestamp, {
    getTime() { return this.t; },
    getInc() { return this.i; },
    toString() { return "Timestamp(" + this.t + ", " + this.i + ")"; },
    tojson() { return this.toString(); },
    toJSON() { return {$timestamp: {t: this.t, i: this.i}}; },
});

function BinData(...args) {
    if (args.length !== 2) {
        throw fail("BinData takes 2 arguments -- BinData(subtype,data)");
    }
    return native.newBinary(new.target ? new.target.prototype : BinData.prototype, args[0], args[1]);
}
methods(BinData, {
    toString() { return native.spell(this); },
    tojson() { return native.spell(this); },
    toJSON() {
        return {$binary: native.base64(this), $type: native.subtype(this).toString(16).padStart(2, "0")};
    },
    base64() { return native.base64(this); },
    hex() { return native.hex(this); },
    subtype() { return native.subtype(this); },
    length() { return native.length(this); },
});
getter(BinData, "type", function() { return native.subtype(this); });
getter(BinData, "len", function() { return native.length(this); });

function UUID(...args) {
    return native.newUuid(BinData.prototype, args);
}
function HexData(...args) {
    if (args.length !== 2) {
        throw fail("HexData needs 2 arguments -- HexData(subtype,hexstring)");
    }
    return native.newHex(BinData.prototype, args[0], args[1]);
}
function MD5(...args) {
    if (args.length !== 1) {
        throw fail("MD5 needs 1 argument -- MD5(hexstring)");
    }
    if (typeof args[0] !== "string" || args[0].length !== 32) {
        throw fail("MD5 string must have 32 characters");
    }
    return native.newHex(BinData.prototype, 5, args[0]);
}

function DBRef(...args) {
    if (args.length !== 2 && args.length !== 3) {
        throw fail("DBRef needs 2 or 3 arguments");
    }
    if (typeof args[0] !== "string") {
        throw fail("DBRef 1st parameter must be a string");
    }
    if (args.length === 3 && typeof args[2] !== "string") {
        throw fail("DBRef 3rd parameter must be a string");
    }
    const made = new.target ? this : Object.create(DBRef.prototype);
    made.$ref = args[0];
    made.$id = args[1];
    if (args.length === 3) {
        made.$db = args[2];
    }
    return made;
}
methods(DBRef, {
    getRef() { return this.$ref; },
    getId() { return this.$id; },
    getDb() { return this.$db; },
    getCollection() { return this.$ref; },
    toString() {
        const shown = typeof tojson === "function" ? tojson : JSON.stringify;
        return "DBRef(" + [this.$ref, this.$id].concat(this.$db ? [this.$db] : []).map((v) => shown(v)).join(", ") + ")";
    },
    tojson() { return this.toString(); },
});

function DBPointer(...args) {
    if (args.length !== 2) {
        throw fail("DBPointer needs 2 arguments");
    }
    if (typeof args[0] !== "string") {
        throw fail("DBPointer 1st parameter must be a string");
    }
    if (!(args[1] instanceof ObjectId)) {
        throw fail("DBPointer 2nd parameter must be an ObjectId");
    }
    const made = native.newMarked(new.target ? new.target.prototype : DBPointer.prototype, "DBPointer");
    made.ns = args[0];
    made.id = args[1];
    return made;
}
methods(DBPointer, {
    getNs() { return this.ns; },
    getId() { return this.id; },
    toString() { return "DBPointer(" + JSON.stringify(this.ns) + ", " + this.id.toString() + ")"; },
    tojson() { return this.toString(); },
});

function Code(...args) {
    if (args.length > 2) {
        throw fail("Code needs 0, 1 or 2 arguments");
    }
    const [code = "", scope] = args;
    if (typeof code !== "string" && typeof code !== "function") {
        throw fail("code must be a string");
    }
    if (scope !== undefined && (typeof scope !== "object" || scope === null)) {
        throw fail("scope must be an object");
    }
    const made = native.newMarked(new.target ? new.target.prototype : Code.prototype, "Code");
    made.code = String(code);
    if (scope !== undefined) {
        made.scope = scope;
    }
    return made;
}
methods(Code, {
    toString() {
        const shown = typeof tojson === "function" ? tojson : JSON.stringify;
        return "Code({\"code\":" + JSON.stringify(this.code) +
            (this.scope === undefined ? "" : ",\"scope\":" + shown(this.scope)) + "})";
    },
});

// MinKey and MaxKey are values and can be called: all of `MinKey`, `MinKey()` and `new MinKey()` are the same one.
function singleton(name, strict) {
    const key = {[name]: function() { return key; }}[name];
    const prototype = Object.create(Function.prototype);
    const text = "{ \"" + strict + "\" : 1 }";
    method(prototype, "toString", () => text);
    method(prototype, "tojson", () => text);
    method(prototype, "toJSON", () => ({[strict]: 1}));
    method(prototype, "constructor", key);
    Object.setPrototypeOf(key, prototype);
    Object.defineProperty(key, "prototype", {value: prototype, writable: false, enumerable: false});
    Object.defineProperty(key, Symbol.hasInstance, {value: (other) => other === key});
    return key;
}
const MinKey = singleton("MinKey", "$minKey");
const MaxKey = singleton("MaxKey", "$maxKey");

const classes = {
    NumberLong, NumberInt, NumberDecimal, ObjectId, Timestamp, BinData, UUID, HexData, MD5, DBRef, DBPointer, Code,
    MinKey, MaxKey,
};
for (const name of Object.keys(classes)) {
    method(globalThis, name, classes[name]);
}
method(globalThis, "ObjectID", ObjectId);

native.install({
    NumberLong: NumberLong.prototype,
    NumberInt: NumberInt.prototype,
    NumberDecimal: NumberDecimal.prototype,
    ObjectId: ObjectId.prototype,
    Timestamp: Timestamp.prototype,
    BinData: BinData.prototype,
    DBRef: DBRef.prototype,
    DBPointer: DBPointer.prototype,
    Code: Code.prototype,
    MinKey,
    MaxKey,
});
})
