//! A collection gets another distribution: what its coordinator has shards do and the config server note, and what a
//! recipient asks a donor.

use super::Flag;
use super::ddl::FirstChunk;
use document::{Document, Timestamp};

part! {
    /// Which operation a message is of.
    Resharding {
        ns "ns": String,
        /// The copy's name until it takes the collection's.
        temporary "tempNs": String,
        /// May be a client's choice; participants know the operation by the copy's UUID.
        id "reshardingUUID": [u8; 16],
        old "oldUUID": [u8; 16],
        /// The copy's.
        new "newUUID": [u8; 16],
        /// The collection is in the catalog now.
        tracked "tracked": Flag,
    }
}

part! {
    /// Who has the documents, and who is to have them.
    Distribution {
        key "key": Document,
        chunks "chunks": Vec<FirstChunk>,
        donors "donors": Vec<String>,
    }
}

part! {
    /// A range of a zone that the collection is to have.
    ZoneToCome {
        zone "zone": String,
        min "min": Document,
        max "max": Document,
    }
}

message! {
    /// Keys of the shard's documents, spread evenly.
    ReshardSample = "_shardsvrReshardSample" {
        ns "ns": String,
        old "oldUUID": [u8; 16],
        tracked "tracked": Flag,
        key "key": Document,
        samples "samples": i64,
    }
}

message! {
    /// A donor takes the snapshot that recipients copy.
    ReshardDonate = "_shardsvrReshardDonate" {
        of "resharding": Resharding,
        to_come "toCome": Distribution,
        /// The command that a client gave.
        provenance "provenance": String,
    }
}

message! {
    /// A recipient makes the copy, empty.
    ReshardPrepare = "_shardsvrReshardPrepare" {
        of "resharding": Resharding,
        to_come "toCome": Distribution,
        options "options": Document,
        indexes "indexes": Vec<Document>,
        provenance "provenance": String,
        /// About what will come to this recipient.
        documents "approxDocumentsToCopy": i64,
        bytes "approxBytesToCopy": i64,
        /// Since when no donor's documents were taken without what became of them.
        clone_timestamp "cloneTimestamp": Option<Timestamp>,
    }
}

/// Messages that say of which operation they are, and nothing else.
macro_rules! steps {
    ($($(#[$doc:meta])* $message:ident = $command:literal),+ $(,)?) => {$(
        message! {
            $(#[$doc])*
            $message = $command {
                of "resharding": Resharding,
            }
        }
    )+};
}

steps! {
    /// A recipient takes all documents.
    ReshardClone = "_shardsvrReshardClone",
    /// A recipient takes one difference from each donor.
    ReshardCatchUp = "_shardsvrReshardCatchUp",
    /// A donor, whose writes wait, says whether the collection is still defined as it was.
    ReshardConfirm = "_shardsvrReshardConfirm",
    /// A recipient takes what is left, writes waiting.
    ReshardDrain = "_shardsvrReshardDrain",
    /// The copy takes the collection's place.
    ReshardSwitch = "_shardsvrReshardSwitch",
    /// What was copied goes.
    ReshardAbort = "_shardsvrReshardAbort",
}

message! {
    /// A recipient asks a donor for the next part of what it has not got.
    ReshardFetch = "_shardsvrReshardFetch" {
        new "newUUID": [u8; 16],
        recipient "recipient": String,
        /// `clone`, `changes` or `sessions`.
        what "what": String,
        /// The attempt at the copy, as a run of its coordinator.
        attempt "attempt": Option<Document>,
    }
}

message! {
    /// The catalog notes an operation.
    ReshardingBegin = "_configsvrReshardingBegin" {
        of "resharding": Resharding,
        to_come "toCome": Distribution,
        /// The command that a client gave.
        provenance "provenance": String,
        recipients "recipients": Vec<String>,
        documents "approxDocumentsToCopy": i64,
        bytes "approxBytesToCopy": i64,
        /// In place of those that the collection has.
        zones "zones": Option<Vec<ZoneToCome>>,
    }
}

message! {
    /// The catalog shows how far an operation is.
    ReshardingSetState = "_configsvrReshardingSetState" {
        of "resharding": Resharding,
        state "state": String,
        clone_timestamp "cloneTimestamp": Option<Timestamp>,
    }
}

message! {
    /// The collection is the copy from here.
    ReshardingCommit = "_configsvrReshardingCommit" {
        of "resharding": Resharding,
        to_come "toCome": Distribution,
        unsplittable "unsplittable": Flag,
        unique "unique": Flag,
        zones "zones": Option<Vec<ZoneToCome>>,
        /// Of a collection that was not in the catalog.
        collation "defaultCollation": Option<Document>,
        /// Where its documents are the buckets of a time series.
        series "timeseriesFields": Option<Document>,
    }
}

message! {
    /// The catalog forgets an operation, committed or given up.
    ReshardingEnd = "_configsvrReshardingEnd" {
        of "resharding": Resharding,
        committed "committed": Flag,
    }
}
