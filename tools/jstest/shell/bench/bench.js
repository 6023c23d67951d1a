// benchRun(job), benchRunSync(job): start, wait, finish. benchStart(job): an ObjectId; benchFinish(id): the results.
//
//   job      {host, ops, seconds: 1, parallel: 1, db, randomSeed, throwGLE, totals}
//   ops      {op: "insert" | "update" | "remove" | "find" | "findOne" | "command" | "createIndex" | "dropIndex" | "nop", ns, ...}
//   results  a second: insert, update, delete, query, findOne, command; ...LatencyAverageMicros; errCount, totalOps
//
// In documents of an operation {"#RAND_INT": [low, high]} and its like stand for values made anew for each round.
(function(global) {
    // Tests may put a Map of their own in its place.
    const Map = globalThis.Map;
    // The function of one thread; it travels by its source, so everything it needs is inside of it. Runs until the
    // time is over or somebody counts `stop` down.
    function work(job, index, stop) {
        const sequences = {};
        let seed = (job.randomSeed || 1314159265) + index * 7919;
        const random = () => {
            seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
            return seed / 0x80000000;
        };
        const within = ([low, high]) => low + Math.floor(random() * (high - low));
        const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const templates = {
            "#RAND_INT": within,
            "#RAND_INT_PLUS_THREAD": (range) => within(range) + (range[1] - range[0]) * index,
            "#RAND_STRING": ([length]) => Array.from({length}, () => ALPHABET[Math.floor(random() * 64)]).join(""),
            "#SEQ_INT": ({seq_id, start = 0, step = 1, unique, mod}) => {
                const at = sequences[seq_id] === undefined ? start : sequences[seq_id] + step;
                sequences[seq_id] = at;
                const value = unique ? index * 1e9 + at : at;
                return mod ? value % mod : value;
            },
            "#CONCAT": (parts) => parts.map((part) => String(filled(part))).join(""),
            "#OID": () => ObjectId(),
            "#CUR_DATE": (offset) => new Date(Date.now() + Number(offset)),
        };
        function filled(value) {
            if (Array.isArray(value)) {
                return value.map(filled);
            }
            if (value === null || typeof value !== "object" || Object.getPrototypeOf(value) !== Object.prototype) {
                return value;
            }
            const names = Object.keys(value);
            if (names.length === 1 && templates[names[0]] !== undefined) {
                return templates[names[0]](value[names[0]]);
            }
            const made = {};
            for (const name of names) {
                made[name] = filled(value[name]);
            }
            return made;
        }

        const conn = new Mongo(job.host);
        const concern = (op) => (op.writeConcern ? {writeConcern: op.writeConcern} : {});
        const split = (ns) => [ns.slice(0, ns.indexOf(".")), ns.slice(ns.indexOf(".") + 1)];
        function run(database, command) {
            const reply = conn.runCommand(database, command, 0);
            if (reply.ok !== 1 || reply.writeErrors) {
                const {code, errmsg} = reply.writeErrors ? reply.writeErrors[0] : reply;
                throw Object.assign(new Error(errmsg), {code});
            }
            return reply;
        }
        function drain(database, coll, op, limit) {
            const command = {find: coll, filter: filled(op.query || op.filter || {})};
            for (const [name, value] of [["projection", op.projection || op.fields], ["sort", op.sort], ["skip", op.skip], ["batchSize", op.batchSize], ["limit", limit]]) {
                if (value) {
                    command[name] = value;
                }
            }
            let {cursor} = run(database, command);
            let count = cursor.firstBatch.length;
            while (Number(cursor.id) !== 0) {
                cursor = run(database, {getMore: cursor.id, collection: coll}).cursor;
                count += cursor.nextBatch.length;
            }
            if (op.expected !== undefined && op.expected >= 0 && Number(op.expected) !== count) {
                throw new Error("expected " + op.expected + " documents, found " + count);
            }
        }
        const kinds = {
            insert(op, database, coll) {
                const documents = Array.isArray(op.doc) ? op.doc : [op.doc];
                run(database, {insert: coll, documents: documents.map(filled), ...concern(op)});
                return "insert";
            },
            update(op, database, coll) {
                const update = {q: filled(op.query || {}), u: filled(op.update), multi: Boolean(op.multi), upsert: Boolean(op.upsert)};
                run(database, {update: coll, updates: [update], ...concern(op)});
                return "update";
            },
            remove(op, database, coll) {
                run(database, {delete: coll, deletes: [{q: filled(op.query || {}), limit: op.multi === false ? 1 : 0}], ...concern(op)});
                return "delete";
            },
            find(op, database, coll) {
                drain(database, coll, op, op.limit);
                return "query";
            },
            findOne(op, database, coll) {
                drain(database, coll, op, 1);
                return "findOne";
            },
            command(op, database) {
                run(database, filled(op.command));
                return "command";
            },
            createIndex(op, database, coll) {
                const name = Object.entries(op.key).flat().join("_");
                run(database, {createIndexes: coll, indexes: [{key: op.key, name, ...(op.options || {})}]});
                return "command";
            },
            dropIndex(op, database, coll) {
                run(database, {dropIndexes: coll, index: op.key});
                return "command";
            },
            nop: () => undefined,
        };
        kinds.delete = kinds.remove;
        kinds.query = kinds.find;

        const result = {errCount: 0, counts: {}, micros: {}, rounds: 0};
        const end = Date.now() + job.seconds * 1000;
        while (Date.now() < end && Number(CountDownLatch._getCount(stop)) > 0) {
            for (const op of job.ops) {
                if (kinds[op.op] === undefined) {
                    throw new Error("there is no benchmark operation '" + op.op + "'");
                }
                const [database, coll] = split(op.ns && op.ns.includes(".") ? op.ns : (op.ns || job.db || "test") + ".$cmd");
                const begun = performance.now();
                try {
                    const kind = kinds[op.op](op, database, coll);
                    if (kind !== undefined) {
                        result.counts[kind] = (result.counts[kind] || 0) + 1;
                        result.micros[kind] = (result.micros[kind] || 0) + (performance.now() - begun) * 1000;
                    }
                } catch (error) {
                    result.errCount++;
                    if (job.throwGLE || op.throwGLE) {
                        throw error;
                    }
                    if (!job.hideErrors) {
                        print("benchRun: " + op.op + " on " + op.ns + ": " + error.message);
                    }
                }
                if (op.delay) {
                    sleep(op.delay);
                }
            }
            result.rounds++;
        }
        return result;
    }

    const Worker = function(...args) {
        this.init(...args);
    };
    _threadInject(Worker.prototype);
    const running = new Map();

    function checked(given) {
        if (given === null || typeof given !== "object") {
            throw new Error("benchRun takes one document");
        }
        if (!Array.isArray(given.ops)) {
            throw new Error("the document needs 'ops', a list of operations");
        }
        const host = given.host || (typeof db === "object" ? db.getMongo().host : undefined);
        if (host === undefined) {
            throw new Error("the document needs 'host'");
        }
        const number = (name, fallback) => (given[name] === undefined ? fallback : Number(given[name]));
        return {...given, host, seconds: number("seconds", 1), parallel: number("parallel", 1)};
    }
    function start(given) {
        const job = checked(given);
        const stop = CountDownLatch._new(1);
        const workers = Array.from({length: job.parallel}, (_, i) => new Worker(work, job, i, stop));
        workers.forEach((worker) => worker.start());
        const id = ObjectId();
        running.set(id.str, {job, stop, workers, begun: Date.now()});
        return id;
    }
    function finish(id) {
        const run = running.get(id && id.str);
        if (run === undefined) {
            throw new Error("no benchmark with this id runs");
        }
        running.delete(id.str);
        CountDownLatch._countDown(run.stop);
        const seconds = Math.max((Date.now() - run.begun) / 1000, 0.001);
        return summary(run.job, run.workers.map((worker) => worker.returnData()), seconds);
    }
    // Latencies under the names of the real one, which are not quite those of the counts.
    const LATENCIES = {findOne: "findOne", insert: "insert", delete: "delete", update: "update", query: "query", command: "commands"};

    function summary(job, results, seconds) {
        const sum = (get) => results.reduce((total, result) => total + Number(get(result) || 0), 0);
        const all = {note: "values per second", errCount: NumberLong(sum((r) => r.errCount)), trapped: "no"};
        let total = 0;
        for (const [kind, name] of Object.entries(LATENCIES)) {
            const count = sum((r) => r.counts[kind]);
            total += count;
            if (count > 0) {
                all[name + "LatencyAverageMicros"] = sum((r) => r.micros[kind]) / count;
            }
            all[kind] = job.totals ? NumberLong(count) : count / seconds;
        }
        all.totalOps = NumberLong(total);
        all["totalOps/s"] = total / seconds;
        return all;
    }
    function benchRun(given) {
        const id = start(given);
        running.get(id.str).workers.forEach((worker) => {
            try {
                worker.join();
            } catch (error) {
                // `finish` throws it, when all have ended.
            }
        });
        return finish(id);
    }
    Object.assign(global, {benchRun, benchRunSync: benchRun, benchStart: start, benchFinish: finish});
})(globalThis);
