// What Compass does when a person connects and looks around, by the library that it does it with.
import { createRequire } from 'node:module';
import { check, report } from './check.mjs';

const { connect } = createRequire(import.meta.url)('mongodb-data-service');
const service = await connect({ connectionOptions: { connectionString: process.env.TESSERA_URI }, productName: 'Tessera clients' });
const [db, ns] = ['clients_compass', 'clients_compass.rows'];
await service.dropDatabase(db);

await check('the server is recognised for what it is', async (equal) => {
  const instance = await service.instance();
  equal([instance.genuineMongoDB.isGenuine, instance.build.isEnterprise, instance.build.version.startsWith('8.0')], [true, false, true]);
  // A router has no such parameter.
  equal([instance.host.os !== undefined, instance.featureCompatibilityVersion], [true, service.isMongos() ? null : '8.0']);
  equal([instance.isAtlas, instance.isLocalAtlas, service.isWritable()], [false, false, true]);
  equal(service.isMongos(), service.getCurrentTopologyType() === 'Sharded');
});

await check('databases and collections are listed with their figures', async (equal) => {
  await service.createCollection(ns, {});
  await service.createView('seen', ns, [{ $match: { x: 1 } }], {});
  await service.createCollection(`${db}.times`, { timeseries: { timeField: 't' } });
  await service.insertMany(ns, Array.from({ length: 200 }, (_, i) => ({ _id: i, x: i % 2, text: `row ${i}` })));
  equal((await service.listDatabases()).some((d) => d.name === db), true);
  const types = (await service.listCollections(db)).filter((c) => !c.system).map((c) => [c.name, c.type]).sort();
  equal(types, [['rows', 'collection'], ['seen', 'view'], ['times', 'timeseries']]);
  const stats = await service.collectionStats(db, 'rows', 'collection');
  equal([stats.document_count, stats.index_count], [200, 1]);
  equal((await service.databaseStats(db)).collection_count >= 1, true);
  equal((await service.collectionInfo(db, 'seen')).type, 'view');
});

await check('indexes come with their sizes and their use', async (equal) => {
  await service.createIndex(ns, { x: 1 }, { name: 'by_x', sparse: true });
  const index = (await service.indexes(ns)).find((i) => i.name === 'by_x');
  equal([index.properties, index.size > 0, index.usageCount], [['sparse'], true, 0]);
  await service.dropIndex(ns, 'by_x');
  equal((await service.indexes(ns)).map((i) => i.name), ['_id_']);
  equal(await service.isListSearchIndexesSupported(ns), false);
});

await check('documents are counted, sampled, found, explained and changed', async (equal) => {
  equal([await service.estimatedCount(ns), await service.count(ns, { x: 1 })], [200, 100]);
  equal((await service.sample(ns, { size: 20 })).length, 20);
  equal((await service.find(ns, { _id: { $lt: 5 } }, { sort: { _id: -1 }, limit: 2 })).map((d) => d._id), [4, 3]);
  equal(typeof (await service.explainFind(ns, { x: 1 })).queryPlanner, 'object');
  equal((await service.aggregate(ns, [{ $group: { _id: '$x', n: { $sum: 1 } } }, { $sort: { _id: 1 } }])).map((d) => d.n), [100, 100]);
  equal((await service.updateMany(ns, { x: 0 }, { $set: { y: 1 } })).modifiedCount, 100);
  equal((await service.findOneAndReplace(ns, { _id: 7 }, { x: 9 }, { returnDocument: 'after' })).x, 9);
  equal((await service.deleteMany(ns, { x: 9 })).deletedCount, 1);
});

await check('the performance page reads its figures', async (equal) => {
  const status = await service.serverStatus();
  for (const section of ['opcounters', 'mem', 'network', 'connections']) equal(typeof status[section], 'object');
  equal(Array.isArray((await service.currentOp()).inprog), true);
  const top = await service.top().catch((e) => e);
  equal(service.isMongos() ? top instanceof Error : typeof top.totals, service.isMongos() ? true : 'object');
});

await check('a validator is set, a collection renamed and dropped', async (equal) => {
  await service.updateCollection(ns, { validator: { x: { $type: 'number' } }, validationLevel: 'moderate' });
  equal((await service.collectionInfo(db, 'rows')).validation.validator, { x: { $type: 'number' } });
  equal((await service.insertOne(ns, { x: 'no' }).catch((e) => e)).code, 121);
  await service.renameCollection(ns, 'renamed');
  equal(await service.dropCollection(`${db}.renamed`), true);
  equal(await service.dropDatabase(db), true);
});

await service.disconnect();
report();
