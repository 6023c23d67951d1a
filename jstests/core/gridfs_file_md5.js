/**
 * The shell's and older drivers' way to check a GridFS file is the sum that the server makes of its chunks.
 * Fails when chunks are added in another order than that of their numbers, or a missing chunk goes unnoticed.
 */
const chunks = db.getCollection("md5_files.chunks");
chunks.drop();
assert.commandWorked(chunks.createIndex({files_id: 1, n: 1}));

function sum(file, options) {
    return db.runCommand(Object.assign({filemd5: file, root: "md5_files"}, options));
}
// What is not there is empty.
let reply = assert.commandWorked(sum("none"));
assert.eq([0, hex_md5("")], [Number(reply.numChunks), reply.md5]);

// Inserted backwards, beside another file; "QUJD" is ABC.
for (let n = 10; n >= 0; n--) {
    assert.commandWorked(chunks.insert({files_id: "a", n: NumberInt(n), data: BinData(0, n % 2 ? "QUJD" : "REVG")}));
    assert.commandWorked(chunks.insert({files_id: "b", n: NumberInt(n), data: BinData(0, "QUJD")}));
}
const whole = "DEFABC".repeat(5) + "DEF";
reply = assert.commandWorked(sum("a"));
assert.eq([11, hex_md5(whole)], [Number(reply.numChunks), reply.md5]);
assert.eq(hex_md5("ABC".repeat(11)), assert.commandWorked(sum("b")).md5);

// A hole.
assert.commandWorked(chunks.remove({files_id: "a", n: 6}));
assert.commandFailedWithCode(sum("a"), 10040);
reply = assert.commandWorked(sum("a", {partialOk: true}));
assert.eq([6, hex_md5("DEFABC".repeat(3))], [Number(reply.numChunks), reply.md5]);

assert.commandWorked(chunks.update({files_id: "b", n: 3}, {$set: {data: "text"}}));
assert.commandFailedWithCode(sum("b"), 50847);
assert.commandFailedWithCode(sum("b", {root: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(sum("b", {surplus: 1}), 40415);
// An int, which is the only whole number that is a plain one here.
assert.eq("number", typeof sum("b", {root: "nowhere"}).numChunks);
