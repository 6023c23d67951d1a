//! The command table: what a row says, and how a name is found.
//!
//! A row carries everything the dispatcher enforces before the handler runs. The table gives three answers:
//! implemented, known but not implemented (error 238 says so), unknown (error 59, as the real server).

use super::{Context, Reply, Request};
use crate::auth::Asker;
use document::{Doc, Document, Result};
use foldhash::fast::FixedState;
use node::auth::Action;
use node::shape::Shape;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;

/// What an asynchronous handler returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The kinds of node that answer a command, as a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Roles(u8);

impl Roles {
    pub const NONE: Roles = Roles(0);
    pub const STANDALONE: Roles = Roles(1);
    /// A member of a replica set that is neither shard nor config server.
    pub const REPLSET: Roles = Roles(2);
    pub const SHARD: Roles = Roles(4);
    pub const CONFIG: Roles = Roles(8);
    pub const ROUTER: Roles = Roles(16);
    /// Every node that holds data.
    pub const MONGOD: Roles = Roles(15);
    pub const ALL: Roles = Roles(31);
    /// Every member of a set, shards and config servers included.
    pub const SETS: Roles = Roles(14);

    pub const fn or(self, other: Roles) -> Roles {
        Roles(self.0 | other.0)
    }
    pub const fn contains(self, other: Roles) -> bool {
        self.0 & other.0 == other.0 && other.0 != 0
    }
    /// Whether some role is in both.
    pub const fn meets(self, other: Roles) -> bool {
        self.0 & other.0 != 0
    }
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What a command does to data; decides its counters and the read or write concern it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Read,
    Write,
    /// Neither: diagnostics, sessions, administration.
    Other,
}

/// Among which latencies a command's time counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Latencies {
    Reads,
    Writes,
    Commands,
}

/// What a user must be allowed in order to run a command.
#[derive(Clone, Copy)]
pub enum Needs {
    /// To be a member of the cluster. Without authentication members prove it by the cluster's key, if it has one.
    Member,
    /// To have logged in.
    Login,
    /// These actions on the cluster.
    Cluster(&'static [Action]),
    /// On the request's database.
    Database(&'static [Action]),
    /// On the database that the first argument names.
    DatabaseNamed(&'static [Action]),
    /// On the collection of the request's database that the first argument names.
    Collection(&'static [Action]),
    /// On the namespace, `db.collection`, that the first argument names.
    Namespace(&'static [Action]),
    /// What the request says.
    Asked(fn(&Asker<'_>) -> bool),
}

/// The code behind a row.
#[derive(Clone, Copy)]
pub enum Handler {
    /// Answers without waiting for anything.
    Sync(fn(&Context, &Request<'_>, &mut Reply) -> Result<()>),
    Async(for<'a> fn(&'a Context, &'a Request<'a>, &'a mut Reply) -> BoxFuture<'a, Result<()>>),
    /// Known, and answered with NotImplemented (238).
    Missing,
}

/// One row of the table. Made by [`Command::sync`], [`Command::future`] or [`Command::missing`] and narrowed by the
/// methods that follow; without them a command is for members of the cluster, touches no data, and is outside the stable API.
#[derive(Clone, Copy)]
pub struct Command {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub roles: Roles,
    pub kind: Kind,
    pub requires_auth: bool,
    /// Asked of a user where authentication is on.
    pub needs: Needs,
    /// Allowed inside a multi-document transaction.
    pub in_transaction: bool,
    /// Member of the stable API, version "1".
    pub stable_api: bool,
    /// Member of version "2", which exists for tests (`acceptApiVersion2`).
    pub second_api: bool,
    /// The version of which it is a deprecated member; empty for none.
    pub deprecated_in: &'static str,
    /// Its fields that version "1" has not; `list.field` is one of the documents in a list.
    pub unstable_fields: &'static [&'static str],
    /// Runs against `admin` only.
    pub admin_only: bool,
    /// Exists only when the node was started with `enableTestCommands=1`.
    pub test_only: bool,
    /// A client that closes its connection interrupts it; so it does every [`Kind::Read`].
    pub ends_with_client: bool,
    /// Only a writable primary answers (the data-bearing nodes check it in the dispatcher).
    pub primary_only: bool,
    /// A secondary answers a read of this kind whatever its read preference.
    pub any_member: bool,
    /// A user may send it to a shard itself, past the routers, whatever database it is about.
    pub direct: bool,
    /// Reads documents, and so takes every level of read concern.
    pub reads_documents: bool,
    /// Takes a write concern from clients; a read does not, nor does what only ends something.
    pub takes_write_concern: bool,
    /// May carry a transaction number outside of transactions.
    pub retryable: bool,
    /// Its fields, checked before the handler runs; None where the handler reads them itself.
    pub shape: Option<&'static Shape>,
    /// Waits as a rule or says nothing of the load: neither logged as slow nor profiled.
    pub quiet: bool,
    /// Its fields that are shown to nobody: passwords, and what proves that one knows them.
    pub secret_fields: &'static [&'static str],
    /// One sentence for `listCommands`.
    pub help: &'static str,
    pub handler: Handler,
}

impl Command {
    const fn new(name: &'static str, roles: Roles, handler: Handler) -> Command {
        Command {
            name,
            aliases: &[],
            roles,
            kind: Kind::Other,
            requires_auth: true,
            needs: Needs::Member,
            in_transaction: false,
            stable_api: false,
            second_api: false,
            deprecated_in: "",
            unstable_fields: &[],
            admin_only: false,
            test_only: false,
            ends_with_client: false,
            primary_only: false,
            any_member: false,
            direct: false,
            reads_documents: false,
            takes_write_concern: true,
            retryable: false,
            shape: None,
            quiet: false,
            secret_fields: &[],
            help: "",
            handler,
        }
    }
    /// A command that answers without waiting.
    pub const fn sync(
        name: &'static str,
        roles: Roles,
        run: fn(&Context, &Request<'_>, &mut Reply) -> Result<()>,
    ) -> Command {
        Command::new(name, roles, Handler::Sync(run))
    }
    /// A command that may wait: `Command::future("find", MONGOD, |c, r, reply| Box::pin(find(c, r, reply)))`.
    pub const fn future(
        name: &'static str,
        roles: Roles,
        run: for<'a> fn(&'a Context, &'a Request<'a>, &'a mut Reply) -> BoxFuture<'a, Result<()>>,
    ) -> Command {
        Command::new(name, roles, Handler::Async(run))
    }
    /// A command of the real server that this one does not have.
    pub const fn missing(name: &'static str, roles: Roles) -> Command {
        Command::new(name, roles, Handler::Missing).needs(Needs::Login)
    }
    pub const fn needs(mut self, needs: Needs) -> Command {
        self.needs = needs;
        self
    }
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Command {
        self.aliases = aliases;
        self
    }
    pub const fn help(mut self, help: &'static str) -> Command {
        self.help = help;
        self
    }
    pub const fn read(mut self) -> Command {
        self.kind = Kind::Read;
        self.ends_with_client = true;
        self.takes_write_concern = false;
        self
    }
    /// A read of documents.
    pub const fn reads_documents(mut self) -> Command {
        self.reads_documents = true;
        self.read()
    }
    pub const fn any_member(mut self) -> Command {
        self.any_member = true;
        self
    }
    /// A user may send it to a shard itself.
    pub const fn direct(mut self) -> Command {
        self.direct = true;
        self
    }
    pub const fn takes_write_concern(mut self) -> Command {
        self.takes_write_concern = true;
        self
    }
    pub const fn takes_no_write_concern(mut self) -> Command {
        self.takes_write_concern = false;
        self
    }
    pub const fn shape(mut self, shape: &'static Shape) -> Command {
        self.shape = Some(shape);
        self
    }
    pub const fn retryable(mut self) -> Command {
        self.retryable = true;
        self
    }
    pub const fn quiet(mut self) -> Command {
        self.quiet = true;
        self
    }
    pub const fn secret(mut self, fields: &'static [&'static str]) -> Command {
        self.secret_fields = fields;
        self
    }
    /// Changes data: also means that only a primary answers.
    pub const fn write(mut self) -> Command {
        self.kind = Kind::Write;
        self.primary_only = true;
        self
    }
    pub const fn primary_only(mut self) -> Command {
        self.primary_only = true;
        self
    }
    pub const fn no_auth(mut self) -> Command {
        self.requires_auth = false;
        self.needs = Needs::Login;
        self
    }
    pub const fn in_transaction(mut self) -> Command {
        self.in_transaction = true;
        self
    }
    pub const fn stable_api(mut self) -> Command {
        self.stable_api = true;
        self
    }
    pub const fn second_api(mut self) -> Command {
        self.second_api = true;
        self
    }
    pub const fn deprecated_in(mut self, version: &'static str) -> Command {
        self.deprecated_in = version;
        self
    }
    /// A member of the stable API but for these fields.
    pub const fn stable_api_without(mut self, fields: &'static [&'static str]) -> Command {
        self.unstable_fields = fields;
        self.stable_api()
    }
    pub const fn admin_only(mut self) -> Command {
        self.admin_only = true;
        self
    }
    pub const fn ends_with_client(mut self) -> Command {
        self.ends_with_client = true;
        self
    }
    pub const fn test_only(mut self) -> Command {
        self.test_only = true;
        self
    }
    /// The body as logs, listings, the profiler and errors may show it.
    pub fn masked(&self, body: Doc<'_>) -> Document {
        let mut shown = body.to_document();
        for (_, value) in shown.0.iter_mut().filter(|(name, _)| self.secret_fields.contains(&name.as_str())) {
            *value = "xxx".into();
        }
        shown
    }
    /// The latencies it counts among: those of documents read or written, or of everything else.
    pub fn latencies(&self) -> Latencies {
        match self.name {
            "find" | "getMore" | "aggregate" | "count" | "distinct" => Latencies::Reads,
            "insert" | "update" | "delete" | "findAndModify" | "bulkWrite" => Latencies::Writes,
            _ => Latencies::Commands,
        }
    }
    /// Whether the operation ends when the connection that it came over closes. A write runs on, as on the real server, since
    /// a client may send one and leave; only another node means by it that nobody wants the write any more.
    pub fn ends_with(&self, peer_is_node: bool) -> bool {
        self.ends_with_client || (peer_is_node && self.kind == Kind::Write)
    }
    pub fn is_implemented(&self) -> bool {
        !matches!(self.handler, Handler::Missing)
    }
}

/// All rows by name and alias. Immutable; built once for the process from the const tables.
pub struct Lookup {
    rows: Vec<&'static Command>,
    by_name: HashMap<&'static [u8], usize, FixedState>,
}

impl Lookup {
    /// Builds the lookup of the rows that some of `roles` answer. A name may stand in one of them only:
    /// [`Lookup::duplicates`] is empty (a test says so). A router's row may have the name of a data-bearing node's.
    pub fn new(tables: &[&'static [Command]], roles: Roles) -> Lookup {
        let rows = tables.iter().flat_map(|table| table.iter()).filter(|row| row.roles.meets(roles));
        let rows: Vec<&'static Command> = rows.collect();
        let mut by_name: HashMap<&[u8], usize, FixedState> = HashMap::default();
        for (index, row) in rows.iter().enumerate() {
            for name in std::iter::once(&row.name).chain(row.aliases) {
                // The first row of a name wins, so that a table named earlier cannot be overridden by accident.
                by_name.entry(name.as_bytes()).or_insert(index);
            }
        }
        Lookup { rows, by_name }
    }
    /// The row of this name, with its position (the index of its counters).
    pub fn find(&self, name: &[u8]) -> Option<(usize, &'static Command)> {
        self.by_name.get(name).map(|index| (*index, self.rows[*index]))
    }
    pub fn rows(&self) -> &[&'static Command] {
        &self.rows
    }
    /// Names that more than one row claims.
    pub fn duplicates(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> = self
            .rows
            .iter()
            .flat_map(|row| std::iter::once(row.name).chain(row.aliases.iter().copied()))
            .collect();
        names.sort_unstable();
        names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
    }
}
