// The launchers of the Node world start these servers as they would start the originals.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { MongoClient } from 'mongodb';
import { MongoMemoryReplSet, MongoMemoryServer } from 'mongodb-memory-server-core';
import { MongoCluster } from 'mongodb-runner';
import { check, report } from './check.mjs';

const bin = process.env.TESSERA_BIN;
const binary = { systemBinary: path.join(bin, 'mongod'), checkMD5: false };
process.env.MONGOMS_SYSTEM_BINARY_VERSION_CHECK = 'false';

async function withClient(uri, use) {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: 20000 });
  try {
    await use(client);
  } finally {
    await client.close();
  }
}

await check('memory-server: one node', async (equal) => {
  const server = await MongoMemoryServer.create({ binary });
  await withClient(server.getUri(), async (client) => {
    await client.db('d').collection('c').insertOne({ _id: 1 });
    equal(await client.db('d').collection('c').countDocuments(), 1);
  });
  await server.stop();
});

await check('memory-server: one node with users', async (equal) => {
  const server = await MongoMemoryServer.create({ binary, auth: { enable: true, customRootName: 'root', customRootPwd: 'p' } });
  const uri = server.getUri();
  await withClient(uri, async (client) => {
    const error = await client.db('d').collection('c').insertOne({}).catch((e) => e);
    equal(error.code, 13);
  });
  await withClient(uri.replace('mongodb://', 'mongodb://root:p@') + '?authSource=admin', async (client) => {
    await client.db('d').collection('c').insertOne({ _id: 1 });
  });
  await server.stop();
});

for (const count of [1, 3]) {
  await check(`memory-server: a set of ${count}`, async (equal) => {
    const set = await MongoMemoryReplSet.create({ binary, replSet: { count, name: 'rs' } });
    await withClient(set.getUri(), async (client) => {
      const c = client.db('d').collection('c');
      await c.insertOne({ _id: 1 }, { writeConcern: { w: count } });
      await client.withSession((session) => session.withTransaction(() => c.insertOne({ _id: 2 }, { session })));
      equal(await c.countDocuments(), 2);
      equal((await client.db('admin').command({ replSetGetStatus: 1 })).members.length, count);
    });
    await set.stop();
  });
}

await check('memory-server: a set of three with users', async (equal) => {
  const auth = { enable: true, customRootName: 'root', customRootPwd: 'p' };
  const set = await MongoMemoryReplSet.create({ binary, replSet: { count: 3, name: 'rs', auth } });
  const uri = set.getUri().replace('mongodb://', 'mongodb://root:p@') + '&authSource=admin';
  await withClient(uri, async (client) => {
    await client.db('d').collection('c').insertOne({ _id: 1 }, { writeConcern: { w: 3 } });
    equal(await client.db('d').collection('c').countDocuments(), 1);
  });
  await set.stop();
});

for (const topology of ['standalone', 'replset', 'sharded']) {
  await check(`mongodb-runner: ${topology}`, async (equal) => {
    const tmpDir = await mkdtemp(path.join(tmpdir(), 'tessera-runner-'));
    const options = { topology, tmpDir, binDir: bin, secondaries: topology === 'standalone' ? 0 : 1, shards: 1 };
    const cluster = await MongoCluster.start(options);
    try {
      await withClient(cluster.connectionString, async (client) => {
        await client.db('d').collection('c').insertOne({ _id: 1 });
        equal(await client.db('d').collection('c').countDocuments(), 1);
      });
    } finally {
      await cluster.close();
      await rm(tmpDir, { recursive: true, force: true });
    }
  });
}

await check('the programs say their version as launchers read it', async (equal) => {
  const { stdout } = await promisify(execFile)(path.join(bin, 'mongod'), ['--version']);
  equal(/^db version v\d+\.\d+\.\d+/m.test(stdout), true);
});

report();
