// Operations in parallel shells, with results left in a collection of the server.
const kColl = "jstestBackgroundOps";

export function startParallelOps(mongo, fn, args = []) {
    const name = new ObjectId().str;
    const [host, ns] = [mongo.host, `test.${kColl}`];
    const run = function (host, name, source, args) {
        const coll = new Mongo(host).getDB("test").getCollection("jstestBackgroundOps");
        let result;
        try {
            result = { ok: true, value: eval("(" + source + ")").apply(null, args) };
        } catch (error) {
            result = { ok: false, error: String(error) };
        }
        assert.commandWorked(coll.insert({ _id: name, result }));
    };
    const join = startParallelShell(funWithArgs(run, host, name, fn.toString(), args), Number(host.split(":").pop()));
    return {
        isFinished: () => mongo.getCollection(ns).findOne({ _id: name }) !== null,
        join() {
            join();
            const { result } = mongo.getCollection(ns).findOne({ _id: name });
            assert(result.ok, result.error);
            return result.value;
        },
    };
}
