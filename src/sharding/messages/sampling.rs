//! What routers hand to shards of queries that they have sampled.

use document::Document;

message! {
    /// A sampled query for the shard to keep, as `config.sampledQueries` has it.
    KeepSample = "_shardsvrKeepSampledQuery" {
        sample "sample": Document,
    }
}
