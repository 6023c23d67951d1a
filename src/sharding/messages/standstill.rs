//! The steps in which the config server has a shard take its part in what happens to all data of the cluster (`shard/ddl/standstill`).

use super::{Flag, Message};
use document::{Document, Result, bail};

part! {
    /// What a shard keeps of a snapshot.
    KeptPart {
        name "name": String,
        id "id": [u8; 16],
    }
}

part! {
    /// A database and its copy.
    DatabaseCopy {
        from "from": String,
        to "to": String,
        /// Those of the copies, by the names of sharded collections.
        uuids "uuids": Document,
        /// The shard is the database's primary, which has also what is not sharded.
        primary "primary": Flag,
    }
}

message! {
    /// No change of the catalog and no migration is under way.
    Quiesce = "_shardsvrStandstill" (= "quiesce") {}
}

message! {
    /// Clients wait. Whether what follows can be done is seen now.
    Begin = "_shardsvrStandstill" (= "begin") {
        /// For reads too.
        reads "reads": Flag,
        /// What the shard has is to be exchanged.
        restore "restore": Flag,
        /// The shard must have this.
        requires "requires": Option<KeptPart>,
        copy "copy": Option<DatabaseCopy>,
    }
}

message! {
    /// Keep what the shard has.
    Take = "_shardsvrStandstill" (= "take") {
        part "part": KeptPart,
    }
}

message! {
    /// Exchange what the shard has for what it has kept.
    PutBack = "_shardsvrStandstill" (= "putBack") {
        /// Without a name the shard was not there yet, and has nothing afterwards.
        name "name": Option<String>,
        /// Databases of which change streams are told here.
        reported "reported": Vec<String>,
    }
}

message! {
    /// Copy a database.
    CopyDatabase = "_shardsvrStandstill" (= "copy") {
        copy "copy": DatabaseCopy,
    }
}

message! {
    /// Succeeds if clients have waited ever since.
    Confirm = "_shardsvrStandstill" (= "confirm") {}
}

message! {
    /// Clients go on.
    End = "_shardsvrStandstill" (= "end") {
        /// What the shard knows of placement is not of its data any more.
        forget "forget": Flag,
        /// What was kept under these names is of no use any more.
        drop "drop": Vec<String>,
    }
}

/// Any of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Quiesce(Quiesce),
    Begin(Begin),
    Take(Take),
    PutBack(PutBack),
    CopyDatabase(CopyDatabase),
    Confirm(Confirm),
    End(End),
}

macro_rules! steps {
    ($($step:ident $name:literal),+) => {
        impl Step {
            /// The command's argument.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Step::$step(_) => $name,)+
                }
            }
            pub fn to_document(&self) -> Document {
                match self {
                    $(Step::$step(step) => step.to_document(),)+
                }
            }
            /// # Errors
            /// BadValue (2) for a step that there is not; those of [`Message::read`].
            pub fn read(body: &Document) -> Result<Step> {
                match super::argument(body, Quiesce::COMMAND)?.as_str() {
                    $($name => $step::read(body).map(Step::$step),)+
                    other => bail!(BAD_VALUE, "a standstill has no step '{other}'"),
                }
            }
        }
    };
}

steps! {
    Quiesce "quiesce", Begin "begin", Take "take", PutBack "putBack", CopyDatabase "copy", Confirm "confirm", End "end"
}
