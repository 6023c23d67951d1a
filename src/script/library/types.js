// Text of values: `tojson` and its family print every BSON type the way the legacy shell prints it, and the small
// helpers on Array, Object, String, Number and Date that tests of that shell use stand beside it.
//
// The form: objects and arrays take one member a line, indented by tabs; a whole value shorter than 80 characters is
// folded into one line; `tojsononeline` never breaks lines.
(function (global) {
    "use strict";

    const FOLD_BELOW = 80;
    const DEPTH_MAX = 100;

    /** Defines hidden members on a prototype, leaving alone what the natives have defined already. */
    function supplement(target, members) {
        for (const name of Object.keys(members)) {
            if (Object.prototype.hasOwnProperty.call(target, name)) continue;
            Object.defineProperty(target, name, {
                value: members[name], writable: true, configurable: true, enumerable: false,
            });
        }
    }

    /** Puts members on a prototype without making them enumerable, so that printing an instance shows its data only. */
    global._defineMethods = function (prototype, methods) {
        for (const name of Object.keys(methods)) {
            Object.defineProperty(prototype, name, {
                value: methods[name], writable: true, configurable: true, enumerable: false,
            });
        }
    };

    const digits = (number, width) => String(number).padStart(width, "0");

    function dateText(date) {
        const ms = date.getTime();
        if (Number.isNaN(ms)) return 'ISODate("")';
        const year = date.getUTCFullYear();
        if (year < 0 || year > 9999) return "new Date(" + ms + ")";
        const whole = digits(year, 4) + "-" + digits(date.getUTCMonth() + 1, 2) + "-" + digits(date.getUTCDate(), 2) +
            "T" + digits(date.getUTCHours(), 2) + ":" + digits(date.getUTCMinutes(), 2) + ":" + digits(date.getUTCSeconds(), 2);
        const fraction = date.getUTCMilliseconds();
        return 'ISODate("' + whole + (fraction ? "." + digits(fraction, 3) : "") + 'Z")';
    }

    // What a level of nesting needs to know: where it stands and how it breaks lines.
    function formatList(open, close, items, indent, oneLine) {
        const separator = oneLine ? " " : "\n";
        const inner = oneLine ? "" : indent + "\t";
        return open + separator + inner + items.join("," + separator + inner) + separator + (oneLine ? "" : indent) + close;
    }

    function formatArray(array, indent, oneLine, depth, sorted) {
        if (array.length === 0) return "[ ]";
        const inner = indent + "\t";
        const items = [];
        for (let i = 0; i < array.length; i++) items.push(format(array[i], inner, oneLine, depth + 1, sorted));
        return formatList("[", "]", items, indent, oneLine);
    }

    function formatMembers(object, indent, oneLine, depth, sorted) {
        const inner = indent + "\t";
        const names = Object.keys(object);
        if (sorted) names.sort();
        const items = names.map(
            name => JSON.stringify(name) + " : " + format(object[name], inner, oneLine, depth + 1, sorted));
        return formatList("{", "}", items, indent, oneLine);
    }

    /** A printer a value brings along: its own `tojson`, or its constructor's; undefined without one. */
    function ownPrinter(object) {
        const own = object.tojson;
        if (typeof own === "function" && own !== global.tojson) return (...args) => own.apply(object, args);
        const constructor = object.constructor;
        if (typeof constructor === "function" && constructor !== Array && typeof constructor.tojson === "function")
            return (...args) => constructor.tojson(object, ...args);
        return undefined;
    }

    function formatObject(object, indent, oneLine, depth, sorted) {
        if (depth > DEPTH_MAX) return "[Object]";
        if (Array.isArray(object)) return formatArray(object, indent, oneLine, depth, sorted);
        if (object instanceof Date) return dateText(object);
        const printer = ownPrinter(object);
        if (printer) return printer(indent, oneLine, depth, sorted);
        if (object instanceof RegExp || object instanceof Error) return String(object);
        if (object instanceof Set) return "Set(" + formatArray([...object], indent, oneLine, depth, sorted) + ")";
        if (object instanceof global.Map) return "Map(" + formatArray([...object], indent, oneLine, depth, sorted) + ")";
        return formatMembers(object, indent, oneLine, depth, sorted);
    }

    function format(value, indent, oneLine, depth, sorted) {
        switch (typeof value) {
            case "string":
                return JSON.stringify(value);
            case "number":
                return Object.is(value, -0) ? "-0" : String(value);
            case "object":
                return value === null ? "null" : formatObject(value, indent, oneLine, depth, sorted);
            case "function": {
                const printer = Object.prototype.hasOwnProperty.call(value, "tojson") ? value.tojson : undefined;
                return typeof printer === "function" ? value.tojson(indent, oneLine, depth) : String(value);
            }
            default:
                return String(value);
        }
    }

    /**
     * Text of any value. `nolint` true keeps it on one line, false keeps every line break, and without it a short value
     * is folded into one line.
     */
    global.tojson = function tojson(value, indent, nolint, depth, sorted) {
        // `array.map(tojson)` passes a number here.
        const margin = typeof indent === "string" ? indent : "";
        const text = format(value, margin, nolint === true, depth || 0, sorted);
        const foldable = typeof value === "object" && value !== null && nolint !== false && margin === "";
        return foldable && text.length < FOLD_BELOW ? text.replace(/[\t\r\n]+/g, " ") : text;
    };
    global.tojsonObject = function (object, indent, nolint, depth, sorted) {
        return formatObject(object, typeof indent === "string" ? indent : "", nolint === true, depth || 0, sorted);
    };
    global.tojsononeline = value => global.tojson(value, " ", true);
    global.toJsonForLog = value => typeof value === "string" ? value : global.tojsononeline(value);
    global.toEJSON = value => global.toJsonForLog(value);
    global.printjson = value => print(global.tojson(value));
    global.printjsononeline = value => print(global.tojsononeline(value));

    global.isString = value => typeof value === "string";
    global.isNumber = value => typeof value === "number";
    global.isObject = value => typeof value === "object" && value !== null || typeof value === "function";

    const compare = global.compare = (left, right) => left === right ? 0 : left < right ? -1 : 1;
    global.compareOn = field => (left, right) => compare(left[field], right[field]);

    // ISO dates.
    const ISO_FORM = new RegExp("^(\\d{4})-?(\\d{2})-?(\\d{2})" +
        "(?:[T ](\\d{2})(?::?(\\d{2})(?::?(\\d{2}(?:[.,]\\d+)?))?)?\\s*(Z|[+-]\\d{2}(?::?\\d{2})?)?)?Z?$");

    function zoneMinutes(zone) {
        if (!zone || zone === "Z") return 0;
        const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(3).replace(":", "") || 0);
        return zone[0] === "-" ? -minutes : minutes;
    }

    /** The date a text in one of the ISO 8601 forms names, in UTC unless it says otherwise; now without a text. */
    global.ISODate = function ISODate(text) {
        if (!text) return new Date();
        const parts = ISO_FORM.exec(text);
        if (!parts) throw new Error("invalid ISO date: " + text);
        const [year, month, day, hour, minute] = parts.slice(1, 6).map(part => Number(part || 0));
        const seconds = Number((parts[6] || "0").replace(",", "."));
        if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 24 || minute > 59 || seconds >= 60)
            throw new Error("invalid ISO date: " + text);
        const ms = Math.round((seconds - Math.floor(seconds)) * 1000);
        const date = new Date(0);
        date.setUTCFullYear(year, month - 1, day);
        date.setUTCHours(hour, minute - zoneMinutes(parts[7]), Math.floor(seconds), ms);
        return date;
    };

    /** Milliseconds that `times` calls of `func` take altogether; further arguments are the calls' own. */
    Date.timeFunc = function (func, times, ...rest) {
        const start = Date.now();
        for (let i = 0; i < (times || 1); i++) func.apply(null, rest);
        return Date.now() - start;
    };
    Date.printAsUTC = true;
    supplement(Date.prototype, {
        tojson() {
            return dateText(this);
        },
        getYear() {
            return this.getFullYear() - 1900;
        },
    });

    RegExp.escape = RegExp.escape || (text => text.replace(/[-[\]{}()*+?.,\\^$|#\s]/g, "\\$&"));
    supplement(RegExp.prototype, {
        tojson() {
            return String(this);
        },
    });

    // Arrays.
    Object.assign(Array, {
        tojson: (array, indent, nolint, depth, sorted) => formatArray(array, indent || "", nolint === true, depth || 0, sorted),
        contains: (array, value) => array.some(member => member == value),
        unique: array => array.filter((value, at) => array.findIndex(other => other == value) === at),
        sum: array => array.length === 0 ? null : array.reduce((total, value) => total + value),
        avg: array => array.length === 0 ? null : Array.sum(array) / array.length,
        /** The deviation of a whole population, not of a sample. */
        stdDev(array) {
            const mean = Array.avg(array);
            return Math.sqrt(Array.avg(array.map(value => (value - mean) ** 2)));
        },
        shuffle(array) {
            for (let last = array.length - 1; last > 0; last--) {
                const other = Math.floor(Math.random() * (last + 1));
                [array[last], array[other]] = [array[other], array[last]];
            }
            return array;
        },
        /** The documents that references point to; only those into `collection` when one is given. */
        fetchRefs(array, collection) {
            return array.filter(ref => !collection || collection === ref.getCollection()).map(ref => ref.fetch());
        },
    });
    global.argumentsToArray = args => Array.from(args);

    // Objects.
    function deepCopy(value) {
        if (Array.isArray(value)) return value.map(deepCopy);
        if (value === null || typeof value !== "object" || Object.getPrototypeOf(value) !== Object.prototype) return value;
        return Object.extend({}, value, true);
    }
    /** Copies all enumerable members of `from` into `into`, whole subtrees when `deep`; returns `into`. */
    Object.extend = function (into, from, deep) {
        for (const name in from) into[name] = deep ? deepCopy(from[name]) : from[name];
        return into;
    };
    Object.merge = (first, second, deep) => Object.extend(Object.extend({}, first, deep), second, deep);
    Object.keySet = object => Object.keys(object);

    // Strings and numbers.
    supplement(String.prototype, {
        ltrim() {
            return this.trimStart();
        },
        rtrim() {
            return this.trimEnd();
        },
        pad(length, right, character) {
            return right ? this.padEnd(length, character || " ") : this.padStart(length, character || " ");
        },
        equalsIgnoreCase(other) {
            return this.toLowerCase() === String(other).toLowerCase();
        },
    });
    supplement(Number.prototype, {
        toPercentStr() {
            return (this * 100).toFixed(2) + "%";
        },
        zeroPad(width) {
            return digits(Math.abs(this), width).replace(/^/, this < 0 ? "-" : "");
        },
    });

    /** A map whose keys are compared as BSON values, so that two equal documents are one key. */
    global.BSONAwareMap = class BSONAwareMap {
        constructor() {
            this._data = {};
        }

        static hash(key) {
            return typeof key + ":" + global.tojson(key, "", true);
        }

        put(key, value) {
            const slot = this._slot(key);
            const old = slot.value;
            slot.value = value;
            return old;
        }

        get(key) {
            const entry = this._find(key);
            return entry ? entry.value : null;
        }

        _find(key) {
            return (this._data[BSONAwareMap.hash(key)] || [])
                .find(entry => global.friendlyEqual(entry.key, key));
        }

        _slot(key) {
            let entry = this._find(key);
            if (!entry) {
                entry = {key, value: null};
                const hash = BSONAwareMap.hash(key);
                (this._data[hash] = this._data[hash] || []).push(entry);
            }
            return entry;
        }

        values() {
            return Object.values(this._data).flat();
        }

        tojson(indent, nolint, depth) {
            const pairs = this.values().map(entry => [entry.key, entry.value]);
            return formatArray(pairs, indent || "", nolint === true, depth || 0);
        }
    };
    // What the natives may leave to the library on the BSON types.
    const proto = name => typeof global[name] === "function" ? global[name].prototype : {};
    supplement(proto("Timestamp"), {
        tojson() {
            return String(this);
        },
        getTime() {
            return this.t;
        },
        getInc() {
            return this.i;
        },
        toString() {
            return "Timestamp(" + this.t + ", " + this.i + ")";
        },
    });
    supplement(proto("ObjectId"), {
        tojson() {
            return String(this);
        },
        valueOf() {
            return this.str;
        },
        getTimestamp() {
            return new Date(parseInt(this.str.slice(0, 8), 16) * 1000);
        },
        equals(other) {
            return this.str === other.str;
        },
    });
    if (typeof global.ObjectId === "function") {
        /** The smallest identifier of the second a date (or a number of milliseconds) falls into. */
        global.ObjectId.fromDate = function (source) {
            const ms = source instanceof Date ? source.getTime() : source;
            if (!Number.isFinite(ms)) throw new Error("Cannot create ObjectId from " + typeof source + ": " + global.tojson(source));
            return new ObjectId(digits(Math.floor(ms / 1000).toString(16), 8) + "0".repeat(16));
        };
    }
    for (const name of ["NumberLong", "NumberInt", "NumberDecimal", "BinData", "DBRef", "DBPointer"]) {
        supplement(proto(name), {
            tojson() {
                return this.toString();
            },
        });
    }
    // `[object Timestamp]`, which tests tell the types apart by.
    for (const name of ["NumberLong", "NumberInt", "NumberDecimal", "BinData", "ObjectId", "Timestamp", "DBRef", "DBPointer", "MinKey", "MaxKey"]) {
        const named = proto(name);
        if (named && !Object.hasOwn(named, Symbol.toStringTag)) {
            Object.defineProperty(named, Symbol.toStringTag, {value: name, configurable: true});
        }
    }
    supplement(proto("DBRef"), {
        getRef() {
            return this.$ref;
        },
        getId() {
            return this.$id;
        },
        getDb() {
            return this.$db;
        },
        getCollection() {
            return this.$ref;
        },
        /** The document referred to, read through the global `db`. */
        fetch() {
            if (!this.$ref || this.$id === undefined) throw new Error("need a ns and an id");
            const home = this.$db ? global.db.getSiblingDB(this.$db) : global.db;
            return home.getCollection(this.$ref).findOne({_id: this.$id});
        },
    });
    supplement(proto("DBPointer"), {
        getCollection() {
            return this.ns;
        },
        fetch() {
            return global.db.getCollection(this.ns).findOne({_id: this.id});
        },
    });
})(globalThis);
