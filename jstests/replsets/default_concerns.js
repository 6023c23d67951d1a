/**
 * A set's defaults of read and write concern hold for all who say nothing, on secondaries too, and survive a restart.
 * It fails if a default is not applied, can be unset for writes, outlives its end, or is lost with the process.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 2});
rst.startSet();
rst.initiate();
rst.awaitSecondaryNodes();
let admin = rst.getPrimary().getDB("admin");
const get = () => assert.commandWorked(admin.runCommand({getDefaultRWConcern: 1}));

let defaults = get();
assert.docEq({w: "majority", wtimeout: 0}, defaults.defaultWriteConcern);
assert.eq("implicit", defaults.defaultWriteConcernSource);
assert.docEq({level: "local"}, defaults.defaultReadConcern);
assert.eq("implicit", defaults.defaultReadConcernSource);
assert(defaults.localUpdateWallClockTime instanceof Date);

let reply = assert.commandWorked(admin.runCommand({
    setDefaultRWConcern: 1, defaultWriteConcern: {w: 1, wtimeout: 300}, defaultReadConcern: {level: "majority"},
}));
assert.docEq({w: 1, wtimeout: 300}, reply.defaultWriteConcern);
defaults = get();
assert.docEq({w: 1, wtimeout: 300}, defaults.defaultWriteConcern);
assert.docEq({level: "majority"}, defaults.defaultReadConcern);
assert.eq("global", defaults.defaultWriteConcernSource);
assert.eq("global", defaults.defaultReadConcernSource);
assert(defaults.updateOpTime instanceof Timestamp);
assert(defaults.updateWallClockTime instanceof Date);
const entry = admin.getSiblingDB("config").settings.findOne({_id: "ReadWriteConcernDefaults"});
assert.docEq({level: "majority"}, entry.defaultReadConcern);

// Secondaries hear of it as of any other change.
const secondary = rst.getSecondary();
secondary.setSecondaryOk();
const byDefault = (level) => {
    const counted = () => {
        const of = assert.commandWorked(secondary.adminCommand({serverStatus: 1})).readConcernCounters.nonTransactionOps.noneInfo;
        return Number(level === "local" ? of.implicitDefault.local : of.CWRC[level]);
    };
    assert.soon(() => {
        const before = counted();
        assert.commandWorked(secondary.getDB("test").runCommand({find: "c"}));
        return counted() > before;
    }, "reads on a secondary are not " + level);
};
byDefault("majority");

// It is applied: a default that is not met shows in every write that says nothing. One that cannot be met is refused.
assert.commandFailedWithCode(admin.runCommand({setDefaultRWConcern: 1, defaultWriteConcern: {w: 3}}), 100);
assert.commandWorked(admin.runCommand({setDefaultRWConcern: 1, defaultWriteConcern: {w: 2, wtimeout: 100}}));
const stopped = configureFailPoint(rst.getSecondary(), "stopReplProducer");
assert.soon(() => {
    reply = rst.getPrimary().getDB("test").runCommand({insert: "c", documents: [{}]});
    return reply.ok === 1 && reply.writeConcernError;
});
assert.eq(64, reply.writeConcernError.code);
stopped.off();
assert.eq("customDefault", reply.writeConcernError.errInfo.writeConcern.provenance);
reply = assert.commandWorked(rst.getPrimary().getDB("test").runCommand(
    {insert: "c", documents: [{_id: 2}], writeConcern: {w: 1}}));
assert(!("writeConcernError" in reply));
assert.docEq({level: "majority"}, get().defaultReadConcern, "what is not named stays");
assert.commandWorked(admin.runCommand(
    {setDefaultRWConcern: 1, defaultWriteConcern: {w: 1}, defaultReadConcern: {}, writeConcern: {w: 1}}));
assert.docEq({level: "local"}, get().defaultReadConcern);
byDefault("local");

// Refused.
const set = (fields) => admin.runCommand(Object.assign({setDefaultRWConcern: 1, writeConcern: {w: 1}}, fields));
assert.commandFailedWithCode(set({}), 2);
assert.commandFailedWithCode(set({defaultWriteConcern: {w: 0}}), 2);
assert.commandFailedWithCode(set({defaultWriteConcern: {}}), 20);
assert.commandFailedWithCode(set({defaultReadConcern: {level: "linearizable"}}), 2);
assert.commandFailedWithCode(set({defaultReadConcern: {level: "snapshot"}}), 2);
assert.commandFailedWithCode(set({defaultReadConcern: {level: "nonsense"}}), [2, 9]);
assert.commandFailedWithCode(rst.getPrimary().getDB("test").runCommand({getDefaultRWConcern: 1}), 13);

// Kept.
const before = get();
rst.restart(0);
admin = rst.getPrimary().getDB("admin");
const after = get();
assert.docEq(before.defaultWriteConcern, after.defaultWriteConcern);
assert.eq("global", after.defaultWriteConcernSource);
rst.stopSet();
