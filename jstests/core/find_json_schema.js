/**
 * $jsonSchema describes the shape of documents, in queries and in validators.
 * Fails when a keyword is ignored or misread, or a malformed schema is taken.
 */
const coll = db.find_json_schema;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, name: "ab", age: NumberInt(20), tags: ["x", "y"], at: {city: "Oslo"}},
    {_id: 1, name: "abcdef", age: 20.5, tags: []},
    {_id: 2, name: 7, age: NumberInt(-1)},
    {_id: 3, age: "twenty"},
    {_id: 4, name: "cd", tags: ["x", "x"], at: {city: 3}},
]));

function ids(schema) {
    return coll.find({$jsonSchema: schema}).sort({_id: 1}).toArray().map(doc => doc._id);
}

assert.eq([0, 1, 2, 3, 4], ids({}));
assert.eq([0, 1, 2, 4], ids({required: ["name"]}));
assert.eq([0, 1, 3, 4], ids({properties: {name: {bsonType: "string"}}}));
assert.eq([0, 2, 4], ids({properties: {age: {bsonType: "int"}}}));
assert.eq([0, 1, 2, 4], ids({properties: {age: {type: "number"}}}));
assert.eq([0, 1, 3, 4], ids({properties: {age: {minimum: 0}}}));
assert.eq([3, 4], ids({properties: {age: {minimum: 0, maximum: 20, exclusiveMaximum: true}}}));
assert.eq([0, 2, 3, 4], ids({properties: {name: {maxLength: 2}}}));
assert.eq([0, 1, 2, 3], ids({properties: {name: {pattern: "^ab"}}}));
assert.eq([0, 1, 2, 3], ids({properties: {tags: {uniqueItems: true}}}));
assert.eq([0, 2, 3, 4], ids({properties: {tags: {minItems: 1}}}));
assert.eq([0, 1, 2, 3, 4], ids({properties: {tags: {items: {enum: ["x", "y"]}}}}));
assert.eq([0, 1, 2, 3], ids({properties: {at: {properties: {city: {type: "string"}}}}}));
assert.eq([0, 4], ids({required: ["at"], properties: {at: {bsonType: "object"}}}));
assert.eq([2, 3], ids({properties: {_id: {}, name: {}, age: {}}, additionalProperties: false}));
assert.eq([2], ids({properties: {name: {not: {type: "string"}}}, required: ["name"]}));
assert.eq([0, 1, 3], ids({anyOf: [{required: ["tags", "age"]}, {properties: {age: {type: "string"}}, required: ["age"]}]}));
assert.eq([1, 3, 4], ids({minProperties: 2, maxProperties: 4, properties: {name: {type: "string"}}}));

const name = coll.getName();
for (const schema of [
         1,
         {unheardOf: 1},
         {required: []},
         {required: "name"},
         {properties: 1},
         {type: "strong"},
         {bsonType: "strong"},
         {type: "string", bsonType: "string"},
         {minimum: "0"},
         {exclusiveMinimum: true},
         {type: "integer"},
         {$ref: "#"},
         {minLength: -1},
     ]) {
    assert.commandFailedWithCode(db.runCommand({find: name, filter: {$jsonSchema: schema}}),
                                 [ErrorCodes.FailedToParse, ErrorCodes.TypeMismatch, ErrorCodes.BadValue],
                                 () => tojson(schema));
}

// What a schema says of encryption is checked as well.
for (const [schema, code] of [
         [{encrypt: 1}, ErrorCodes.TypeMismatch],
         [{encrypt: {}, bsonType: "binData"}, ErrorCodes.FailedToParse],
         [{encrypt: {}, encryptMetadata: {keyId: "/key"}}, ErrorCodes.FailedToParse],
         [{encryptMetadata: {}}, ErrorCodes.FailedToParse],
         [{encrypt: {algorithm: "rot13"}}, ErrorCodes.BadValue],
         [{encrypt: {keyId: 1}}, 51085],
         [{encrypt: {unheardOf: 1}}, 40415],
     ]) {
    assert.commandFailedWithCode(
        db.runCommand({find: name, filter: {$jsonSchema: {properties: {s: schema}}}}), code, () => tojson(schema));
}
assert.eq([0, 1, 2, 3, 4], ids({encryptMetadata: {keyId: "/key"}, properties: {s: {encrypt: {bsonType: ["string", "int"]}}}}));
assert.eq([3], ids({properties: {name: {encrypt: {}}}}));
