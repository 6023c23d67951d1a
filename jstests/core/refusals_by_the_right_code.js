/**
 * Clients tell refusals apart by their codes: each of these commands has one mistake, and is refused for it.
 * Fails if the code is that of another mistake, or if the command is taken.
 */
const coll = db.refusals_by_the_right_code;
coll.drop();
assert.commandWorked(coll.insert({_id: 1, n: 1, place: {type: "Point", coordinates: [0, 0]}}));
assert.commandWorked(coll.createIndex({place: "2dsphere"}));
const name = coll.getName();
const refused = (code, command) => assert.commandFailedWithCode(db.runCommand(command), code, () => tojson(command));
const pipeline = (...stages) => ({aggregate: name, pipeline: stages, cursor: {}});

// A null is of the wrong type; what is not there is missing.
refused(ErrorCodes.TypeMismatch, {dropIndexes: name, index: null});
refused(40414, {dropIndexes: name});

// A distance must end somewhere.
const near = limits => ({find: name, filter: {place: {$near: Object.assign({$geometry: {type: "Point", coordinates: [0, 0]}}, limits)}}});
for (const endless of [Infinity, NumberDecimal("Infinity"), NumberDecimal("9E6144")]) {
    refused(ErrorCodes.BadValue, near({$maxDistance: endless}));
    refused(ErrorCodes.BadValue, near({$minDistance: endless}));
}
assert.eq(1, assert.commandWorked(db.runCommand(near({$maxDistance: 1e300}))).cursor.firstBatch.length);

// Nothing sorts by distance in a $match, however the distance is written.
refused(5626500, pipeline({$match: {place: {$geoNear: {near: [0, 0]}}}}));
refused(5626500, pipeline({$match: {$or: [{n: 1}, {place: {$near: "nowhere"}}]}}));
refused(5626500, {listCollections: 1, filter: {place: {$nearSphere: []}}});

// A time that names no moment is refused before it is asked for whether times are kept.
refused(ErrorCodes.InvalidOptions, {find: name, readConcern: {level: "local", afterClusterTime: Timestamp(0, 0)}});

// A list is the argument, not its member.
refused(ErrorCodes.TypeMismatch, pipeline({$project: {x: {$sigmoid: [1]}}}));
refused(ErrorCodes.TypeMismatch, pipeline({$project: {x: {$sigmoid: []}}}));
assert.eq([0.5], coll.aggregate([{$project: {x: {$sigmoid: {$subtract: ["$n", 1]}}}}]).toArray().map(d => d.x));

// Two operators in one place are no expression of a projection.
refused(16410, pipeline({$project: {x: {$add: [1, 2], y: 1}}}));
refused(40181, pipeline({$set: {x: {$add: [1, 2], y: 1}}}));

// What is told of a database is refused for the place that it is asked at before the stage around it is looked at.
refused(ErrorCodes.InvalidNamespace, pipeline({$facet: {a: [{$listSessions: {}}]}}));
refused(ErrorCodes.InvalidNamespace, pipeline({$facet: {a: [{$listLocalSessions: {}}]}}));
refused(9621301, pipeline({$facet: {a: [{$listClusterCatalog: {}}]}}));
refused(40600, {aggregate: 1, pipeline: [{$facet: {a: [{$listLocalSessions: {}}]}}], cursor: {}});
refused(ErrorCodes.InvalidNamespace, pipeline({$querySettings: {}}));

// No read of these is of a moment, on no kind of server.
const snapshot = {level: "snapshot"};
refused(ErrorCodes.InvalidOptions, {count: name, readConcern: snapshot});
refused(ErrorCodes.InvalidOptions, Object.assign(pipeline({$planCacheStats: {}}), {readConcern: snapshot}));
refused(ErrorCodes.InvalidOptions, {aggregate: 1, pipeline: [{$listLocalSessions: {}}], cursor: {}, readConcern: snapshot});

// Why somebody is not let in is not told.
refused(ErrorCodes.AuthenticationFailed, {authenticate: 1, mechanism: "SCRAM-SHA-256", user: "nobody"});
