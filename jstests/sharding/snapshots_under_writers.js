/**
 * A snapshot of a cluster is of one moment, taken while clients write through two routers, transactions commit on both shards and a chunk moves.
 * It fails if a write is in it without one that was acknowledged before, if half a transaction is, or if a document is missing or there twice.
 *
 * @tags: [requires_own_servers]
 */
import {snapshotsUnderWriters} from "jstests/sharding/libs/snapshots.js";

snapshotsUnderWriters(new ShardingTest({shards: 2, mongos: 2}));
