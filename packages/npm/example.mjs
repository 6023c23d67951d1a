// What the package is for; `tools/package test` runs it where the package is installed.
import assert from 'node:assert';
import { MongoClient } from 'mongodb';
import { start } from 'tessera-db';

const cluster = await start({ shards: 2 });
const client = await MongoClient.connect(cluster.uri);
await client.db('admin').command({ shardCollection: 'd.c', key: { _id: 'hashed' } });
await client.db('d').collection('c').insertMany(Array.from({ length: 100 }, (_, i) => ({ _id: i })));
assert.equal(await client.db('d').collection('c').countDocuments(), 100);
assert.equal(cluster.info.shards.length, 2);
await client.close();
await cluster.stop();

const set = await start({ replset: 'rs0', setParameter: { ttlMonitorSleepSecs: 5 } });
const other = await MongoClient.connect(set.uri);
await other.db('d').collection('c').insertOne({ _id: 1 });
await set.snapshot('base');
await other.db('d').collection('c').deleteMany({});
await set.restore('base');
assert.equal(await other.db('d').collection('c').countDocuments(), 1);
await other.close();
await set.stop();
await assert.rejects(start({ shards: 0 }), /exit code 2/);
console.log('the package works');
