//! What nodes say to one another of sampled queries.

use document::Document;

message! {
    /// A sampled query for the shard to keep, as `config.sampledQueries` has it.
    KeepSample = "_shardsvrKeepSampledQuery" {
        sample "sample": Document,
    }
}

message! {
    /// A sampler asks for the rates that are its own. The reply is `{configurations: [..]}`.
    AskRates = "_refreshQueryAnalyzerConfiguration" {
        sampler "name": String,
        /// How many queries on sampled collections it has seen a second.
        rate "numQueriesExecutedPerSecond": f64,
    }
}
