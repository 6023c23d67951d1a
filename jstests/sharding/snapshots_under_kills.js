/**
 * A snapshot is taken or put back everywhere or nowhere, whichever node is killed between two of its steps.
 * It fails if a half-made snapshot takes the place of the one before, if a cluster is half put back and serves, if clients wait for ever, or if a write
 * that was acknowledged afterwards is gone.
 *
 * @tags: [requires_own_servers]
 */
import {snapshotsUnderKills} from "jstests/sharding/libs/snapshots.js";

snapshotsUnderKills(new ShardingTest({shards: 2, mongos: 2}));
