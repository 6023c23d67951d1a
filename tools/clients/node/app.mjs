// A small application on the driver for Node: what an application does in a day, each thing checked.
import { MongoClient, GridFSBucket, ObjectId } from 'mongodb';
import { check, report } from './check.mjs';

const uri = process.env.TESSERA_URI;
const client = new MongoClient(uri, { serverSelectionTimeoutMS: 20000 });
await client.connect();
const db = client.db('clients_node');
await db.dropDatabase();

await check('documents are written, read, changed and removed', async (equal) => {
  const items = db.collection('items');
  const { insertedId } = await items.insertOne({ name: 'a', n: 1, at: new Date(0), list: [1, 2] });
  equal(insertedId instanceof ObjectId, true);
  await items.insertMany([{ name: 'b', n: 2 }, { name: 'c', n: 3 }]);
  equal((await items.updateOne({ name: 'a' }, { $inc: { n: 10 }, $push: { list: 3 } })).modifiedCount, 1);
  equal((await items.findOne({ name: 'a' }, { projection: { _id: 0, at: 0 } })), { name: 'a', n: 11, list: [1, 2, 3] });
  equal((await items.findOneAndUpdate({ name: 'b' }, { $set: { x: 1 } }, { returnDocument: 'after' })).x, 1);
  equal(await items.countDocuments({ n: { $gte: 3 } }), 2);
  equal(await items.distinct('name'), ['a', 'b', 'c']);
  equal((await items.deleteMany({ n: { $lt: 5 } })).deletedCount, 2);
});

await check('a unique index refuses a second one', async (equal) => {
  const users = db.collection('users');
  await users.createIndex({ email: 1 }, { unique: true });
  await users.insertOne({ email: 'x' });
  const error = await users.insertOne({ email: 'x' }).catch((e) => e);
  equal([error.code, error.keyPattern], [11000, { email: 1 }]);
  equal((await users.indexes()).map((i) => i.name), ['_id_', 'email_1']);
});

await check('writes go in bulk, in order and not', async (equal) => {
  const bulk = db.collection('bulk');
  const done = await bulk.bulkWrite([
    { insertOne: { document: { _id: 1 } } },
    { updateOne: { filter: { _id: 2 }, update: { $set: { x: 1 } }, upsert: true } },
    { replaceOne: { filter: { _id: 1 }, replacement: { y: 1 } } },
    { deleteOne: { filter: { _id: 2 } } },
  ]);
  equal([done.insertedCount, done.upsertedCount, done.modifiedCount, done.deletedCount], [1, 1, 1, 1]);
  const error = await bulk.insertMany([{ _id: 1 }, { _id: 3 }, { _id: 1 }], { ordered: false }).catch((e) => e);
  equal([error.writeErrors.length, await bulk.countDocuments()], [2, 2]);
  const all = await client.bulkWrite([
    { namespace: 'clients_node.one', name: 'insertOne', document: { _id: 1 } },
    { namespace: 'clients_node.two', name: 'insertOne', document: { _id: 1 } },
  ]);
  equal(all.insertedCount, 2);
});

await check('a long result comes in batches and through a pipeline', async (equal) => {
  const many = db.collection('many');
  await many.insertMany(Array.from({ length: 5000 }, (_, i) => ({ _id: i, group: i % 10 })));
  let seen = 0;
  for await (const d of many.find().sort({ _id: 1 }).batchSize(700)) equal(d._id, seen++);
  equal(seen, 5000);
  const groups = await many.aggregate([{ $group: { _id: '$group', n: { $sum: 1 } } }, { $sort: { _id: 1 } }]).toArray();
  equal(groups, Array.from({ length: 10 }, (_, i) => ({ _id: i, n: 500 })));
});

await check('a transaction happens as a whole or not at all', async (equal) => {
  const accounts = db.collection('accounts');
  await accounts.insertMany([{ _id: 'a', sum: 10 }, { _id: 'b', sum: 0 }]);
  const move = (n, fail) => client.withSession((session) => session.withTransaction(async () => {
    await accounts.updateOne({ _id: 'a' }, { $inc: { sum: -n } }, { session });
    await accounts.updateOne({ _id: 'b' }, { $inc: { sum: n } }, { session });
    if (fail) throw new Error('changed my mind');
  }));
  await move(4, false);
  equal((await move(5, true).catch((e) => e)).message, 'changed my mind');
  equal(await accounts.find().sort({ _id: 1 }).toArray(), [{ _id: 'a', sum: 6 }, { _id: 'b', sum: 4 }]);
});

await check('a change stream tells what happens and goes on from a token', async (equal) => {
  const watched = db.collection('watched');
  await watched.insertOne({ _id: 0 });
  const stream = watched.watch([], { maxAwaitTimeMS: 500 });
  const first = stream.next();
  await new Promise((done) => stream.cursor.once('init', done));
  await watched.insertOne({ _id: 1 });
  await watched.updateOne({ _id: 1 }, { $set: { x: 1 } });
  await watched.deleteOne({ _id: 1 });
  const event = await first;
  equal([event.operationType, event.fullDocument], ['insert', { _id: 1 }]);
  await stream.close();
  const resumed = watched.watch([], { resumeAfter: event._id });
  const rest = [await resumed.next(), await resumed.next()];
  await resumed.close();
  equal(rest.map((e) => e.operationType), ['update', 'delete']);
});

await check('a file is kept in chunks', async (equal) => {
  const bucket = new GridFSBucket(db, { chunkSizeBytes: 1024 });
  const bytes = Buffer.alloc(10_000, 'abc');
  await new Promise((done, failed) => bucket.openUploadStream('f').on('finish', done).on('error', failed).end(bytes));
  const back = [];
  for await (const chunk of bucket.openDownloadStreamByName('f')) back.push(chunk);
  equal(Buffer.concat(back).equals(bytes), true);
  equal(await db.collection('fs.chunks').countDocuments(), 10);
});

if (process.env.TESSERA_FAIL_POINTS) {
  await check('a write whose connection breaks is done once, a read again', async (equal) => {
    const retried = db.collection('retried');
    const fail = (data) => client.db('admin').command({ configureFailPoint: 'failCommand', mode: { times: 1 }, data });
    await retried.insertOne({ _id: 0 });
    await fail({ failCommands: ['insert'], closeConnection: true });
    await retried.insertOne({ _id: 1 });
    await fail({ failCommands: ['update'], errorCode: 262, errorLabels: ['RetryableWriteError'] });
    await retried.updateOne({ _id: 1 }, { $inc: { n: 1 } });
    await fail({ failCommands: ['find'], closeConnection: true });
    equal(await retried.find().sort({ _id: 1 }).toArray(), [{ _id: 0 }, { _id: 1, n: 1 }]);
  });
}

await db.dropDatabase();
await client.close();
report();
