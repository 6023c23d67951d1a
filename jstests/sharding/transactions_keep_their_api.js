/**
 * All commands of a transaction carry the API parameters of its first, through a router too; what the router sends to its shards is
 * its own affair.
 * It fails if other parameters pass, if a commit or an abort may carry others, or if a shard refuses what the router has taken.
 *
 * @tags: [requires_sharding]
 */
const name = jsTestName();
db[name].drop();
assert.commandWorked(db[name].insert({_id: 1}));
const lsid = assert.commandWorked(db.adminCommand({startSession: 1})).id;
let number = 0;
const fields = () => ({lsid, txnNumber: NumberLong(number), autocommit: false});
const api = {apiVersion: "1", apiStrict: true};
const others = [{}, {apiVersion: "1"}, {apiVersion: "1", apiStrict: false}, {...api, apiDeprecationErrors: true}];

for (const ending of ["commitTransaction", "abortTransaction"]) {
    for (const [first, refused] of [[api, others], [{}, [api]]]) {
        number++;
        const write = {update: name, updates: [{q: {_id: 1}, u: {$inc: {n: 1}}}]};
        assert.commandWorked(db.runCommand({...write, ...first, startTransaction: true, ...fields()}));
        for (const other of refused) {
            assert.commandFailedWithCode(db.runCommand({find: name, ...other, ...fields()}), ErrorCodes.APIMismatchError);
            assert.commandFailedWithCode(db.adminCommand({[ending]: 1, ...other, ...fields()}), ErrorCodes.APIMismatchError);
        }
        assert.commandWorked(db.runCommand({find: name, ...first, ...fields()}));
        assert.commandWorked(db.adminCommand({[ending]: 1, ...first, ...fields()}));
    }
}
assert.eq(2, db[name].findOne().n);
