//! `tessera copy`: databases of one server into another, and then every change, between any two that speak the protocol.
//!
//! It is a client of both sides, on the official driver. Its user reads `config` and watches all of the source, and at the target
//! sets zones and writes past validation:
//!
//! ```text
//! begin     [`record`] notes at the target the source's cluster time T
//! create    collections with their options, shard keys, zones and indexes ([`catalog`])
//! documents read by several cursors at once, inserted as they are ([`documents`]); each part is noted when it is in
//! follow    a change stream from T on, applied in order ([`follow`], [`event`]); its token is noted after every batch
//! ```
//!
//! Why this ends with the source's state although nothing stops its writers: every document is copied in some state that it
//! had at T or later, and whatever happened to it since T is in the stream. An event is applied as "this is the document" or
//! "it is gone", by `_id` alone, so doing it again, or to a document that is already newer, is made good by the events that
//! follow. A document that a unique index refuses has an event to come (see [`follow`]). A collection that was renamed since T
//! may have been missed under both of its names, and is copied anew when the stream comes to that, as is one that refuses
//! a change.
//!
//! A copy that was interrupted, killed too, goes on where it was: what is noted is noted only after the target has it.
//!
//! Limits: transactions arrive statement by statement; time series collections and `system.js` have no change streams and are
//! copied as they are; zones are copied at the beginning alone; of documents of two shards with one `_id` one is kept; a
//! Timestamp of zero at a document's top becomes the time of its insert; a batch that is under way while another process
//! takes over may still arrive; without `--follow` the copy is one of a moment only if nobody writes.

mod catalog;
mod documents;
mod event;
mod follow;
mod progress;
mod record;

use mongodb::bson::{Document, Timestamp, doc};
use mongodb::error::{ErrorKind, WriteFailure};
use mongodb::options::{Acknowledgment, ClientOptions, ReadConcern, WriteConcern};
use mongodb::{Client, ClientSession};
use std::time::Duration;

/// What stands in the target beside the copies: how far they are.
const OWN_DATABASE: &str = "tessera_copy";

/// The options of `tessera copy`.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// The address of the server to copy from; to follow it, that of a set or a router.
    #[arg(long, value_name = "URI")]
    pub from: String,
    /// The address of the server to copy to.
    #[arg(long, value_name = "URI")]
    pub to: String,
    /// Copy this database, which may be said several times; otherwise all but admin, config and local.
    #[arg(long = "db", value_name = "DB")]
    pub databases: Vec<String>,
    /// Then apply every change of the source, until Ctrl-C; said again, go on from there.
    #[arg(long)]
    pub follow: bool,
    /// Drop the databases at the target first, and begin anew.
    #[arg(long)]
    pub drop: bool,
    /// How many parts of collections are copied at the same time.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub parallel: u16,
}

/// Why a copy ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// One of the servers refused, or cannot be reached.
    #[error("{}", text(.0))]
    Server(#[from] mongodb::error::Error),
    /// The source did when it was asked for what an event is about.
    #[error("{}", text(.0))]
    Source(mongodb::error::Error),
    /// What a server sent is no BSON, or not of the form that it should have.
    #[error(transparent)]
    Bson(#[from] mongodb::bson::error::Error),
    /// The target did a write and cannot say that a majority has it.
    #[error("the target does not acknowledge a write ({code}): {message}")]
    Unacknowledged { code: i32, message: String },
    /// The copy cannot be made as it was asked for.
    #[error("{0}")]
    Refused(String),
}

type Result<T> = std::result::Result<T, Error>;

/// Both sides, and what of the source is meant.
struct Copy {
    from: Client,
    to: Client,
    options: Options,
}

/// Copies, and follows if that was asked for, until `stop` is ready.
///
/// # Errors
/// The error of a server that does not go away by trying again, or why the target cannot take the copy.
pub async fn copy(options: Options, stop: impl Future<Output = ()>) -> Result<()> {
    let from = connect(&options.from, None).await?;
    // What is read must not be undone by a change of primaries; a standalone node, which has none, keeps no cluster time either.
    let from = match hello(&from).await?.get_timestamp("operationTime") {
        Ok(_) => connect(&options.from, Some(ReadConcern::majority())).await?,
        Err(_) => from,
    };
    let copy = Copy { from, to: connect(&options.to, None).await?, options };
    tokio::select! {
        done = copy.run() => done,
        () = stop => {
            println!("stopped; the same command goes on from here, unless it says --drop");
            Ok(())
        }
    }
}

async fn connect(uri: &str, read_concern: Option<ReadConcern>) -> Result<Client> {
    let mut options = ClientOptions::parse(uri).await?;
    options.read_concern = read_concern;
    // A member that lags may not yet have what the stream has told.
    options.selection_criteria = None;
    options.app_name = Some("tessera copy".to_string());
    options.write_concern = Some(WriteConcern::builder().w(Acknowledgment::Majority).build());
    options.server_selection_timeout.get_or_insert(Duration::from_secs(10));
    Ok(Client::with_options(options)?)
}

impl Copy {
    async fn run(&self) -> Result<()> {
        let mut record = record::Record::open(self).await?;
        if !record.has_documents() {
            self.documents(&record).await?;
            record.note_documents(self).await?;
        }
        if self.options.follow {
            return self.follow(&mut record).await;
        }
        println!("all documents are copied: --follow goes on with the changes since, --drop begins anew");
        Ok(())
    }

    /// Whether the database is one that is copied.
    fn takes(&self, db: &str) -> bool {
        let asked = &self.options.databases;
        !["admin", "config", "local", OWN_DATABASE].contains(&db)
            && (asked.is_empty() || asked.iter().any(|d| d == db))
    }

    /// A command to the target that changes its catalog; one that finds its work done has done it.
    async fn change(&self, db: &str, mut command: Document, done: &[i32]) -> Result<()> {
        command.insert("writeConcern", doc! { "w": "majority" });
        self.ask(db, command, done).await
    }

    /// The same, of a command that takes no write concern.
    async fn ask(&self, db: &str, command: Document, done: &[i32]) -> Result<()> {
        match self.to.database(db).run_command(command).await {
            Err(error) if has_code(&error, done) => Ok(()),
            reply => acknowledged(reply?.get_document("writeConcernError").ok()),
        }
    }

    /// A session of the source whose reads see all that happened up to the time.
    async fn session(&self, at: Timestamp) -> Result<ClientSession> {
        let mut session = self.from.start_session().causal_consistency(true).await?;
        if at != record::NEVER {
            session.advance_operation_time(at);
        }
        Ok(session)
    }

    async fn is_router(client: &Client) -> Result<bool> {
        Ok(hello(client).await?.get_str("msg").is_ok_and(|m| m == "isdbgrid"))
    }
}

async fn hello(client: &Client) -> Result<Document> {
    Ok(client.database("admin").run_command(doc! { "hello": 1 }).await?)
}

/// Codes of the servers that the copy tells apart.
mod codes {
    /// Not allowed, no memory, no disk: whatever the change was.
    pub(crate) const OF_NO_CHANGE: [i32; 3] = [13, 146, 14031];
    /// A document that may be inserted but not take the place of another: names with a dollar; an `_id` that is equal by the
    /// collection's collation alone.
    pub(crate) const NO_REPLACEMENT: [i32; 2] = [52, 66];
    pub(crate) const UNKNOWN_FIELD: i32 = 40415;
    pub(crate) const NAMESPACE_NOT_FOUND: i32 = 26;
    pub(crate) const INDEX_NOT_FOUND: i32 = 27;
    pub(crate) const ALREADY_INITIALIZED: i32 = 23;
    pub(crate) const NAMESPACE_EXISTS: i32 = 48;
    pub(crate) const DUPLICATE_KEY: i32 = 11000;
    /// An index of that name or key is another one, or documents of different times claim one key: the stream will tell.
    pub(crate) const INDEX_TO_COME: [i32; 3] = [85, 86, DUPLICATE_KEY];
    /// An index of that name or key is another one.
    pub(crate) const OTHER_INDEX: [i32; 2] = [85, 86];
    pub(crate) const HISTORY_LOST: i32 = 286;
    /// The retryable codes of reads and writes (https://github.com/mongodb/specifications); lost cursors; locks, limits,
    /// conflicts and stale versions, which pass.
    #[rustfmt::skip]
    pub(crate) const PASSING: &[i32] = &[
        6, 7, 64, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436,
        43, 175,
        24, 50, 112, 117, 215, 11601, 13388,
    ];
}

/// The error that a reply's `writeConcernError` is.
fn acknowledged(refused: Option<&Document>) -> Result<()> {
    let Some(refused) = refused else { return Ok(()) };
    let message = refused.get_str("errmsg").unwrap_or_default().to_string();
    Err(Error::Unacknowledged { code: refused.get_i32("code").unwrap_or(0), message })
}

/// What a server says, without the rest of its reply.
fn text(error: &mongodb::error::Error) -> String {
    match &*error.kind {
        ErrorKind::Command(e) => format!("{} ({})", e.message, e.code_name),
        kind => kind.to_string(),
    }
}

/// The code of a server's refusal; none for what is no reply.
fn code(error: &mongodb::error::Error) -> Option<i32> {
    match &*error.kind {
        ErrorKind::Command(e) => Some(e.code),
        ErrorKind::Write(WriteFailure::WriteError(e)) => Some(e.code),
        ErrorKind::Write(WriteFailure::WriteConcernError(e)) => Some(e.code),
        ErrorKind::InsertMany(e) => e.write_concern_error.as_ref().map(|e| e.code),
        _ => None,
    }
}

fn has_code(error: &mongodb::error::Error, codes: &[i32]) -> bool {
    code(error).is_some_and(|code| codes.contains(&code))
}

impl Error {
    fn of_source(self) -> Error {
        match self {
            Error::Server(error) => Error::Source(error),
            other => other,
        }
    }

    /// Whether trying again may help: the connection broke, a primary left, a cursor was lost.
    fn is_transient(&self) -> bool {
        match self {
            Error::Refused(_) | Error::Bson(_) => false,
            Error::Unacknowledged { code, .. } => codes::PASSING.contains(code),
            Error::Server(error) | Error::Source(error) => {
                matches!(
                    &*error.kind,
                    ErrorKind::Io(_)
                        | ErrorKind::ServerSelection { .. }
                        | ErrorKind::ConnectionPoolCleared { .. }
                ) || error.contains_label("RetryableWriteError")
                    || error.contains_label("ResumableChangeStreamError")
                    || has_code(error, codes::PASSING)
            }
        }
    }
}
