//! Who is asking, and whether that is allowed.
//!
//! ```text
//! hello, saslStart, saslContinue -> sasl -> the connection's user (ClientInfo::user)
//! every request -> gate::enter (has somebody logged in? is the user still what it was?)
//!               -> gate::authorize (the row's needs, by needs and pipeline)
//! key, member   -> the key, or the certificates, by which members of the cluster know one another
//! ```
//! A user is read when it logs in and again when something of users or roles has changed since: [`Auth::generation`] rises with
//! every change on the node that keeps them, and on a router when the config server's has.

pub mod certificate;
pub mod cursors;
pub mod gate;
pub mod key;
pub mod listed;
pub mod member;
pub mod needs;
pub mod pipeline;
pub mod sasl;
#[cfg(test)]
mod tests;
pub mod users;

pub use key::ClusterKey;
pub use member::ClusterAuthMode;
pub use needs::Asker;

use crate::counters::Counter;
use document::{Document, ObjectId, doc};
use node::auth::store::Store;
use node::auth::{User, UserName};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// Logins by one mechanism, tried and successful.
#[derive(Default)]
pub struct Tries {
    pub received: Counter,
    pub successful: Counter,
}

/// The logins of one mechanism: in hello, by members, and all.
#[derive(Default)]
pub struct MechanismCounters {
    pub speculative: Tries,
    pub cluster: Tries,
    pub all: Tries,
}

/// The mechanisms, as `serverStatus` lists them.
pub const MECHANISMS: [&str; 3] = ["MONGODB-X509", "SCRAM-SHA-1", "SCRAM-SHA-256"];

/// Authentication and authorisation of one node.
pub struct Auth {
    /// Requests are checked. Off, users may still log in.
    pub enabled: bool,
    /// This node shows its certificate to other members instead of proving that it knows the key.
    pub sends_certificate: Arc<AtomicBool>,
    /// Known to every member of the cluster.
    pub key: Option<Arc<ClusterKey>>,
    /// Who members of the cluster log in as.
    pub system: Arc<User>,
    /// Where users are kept; a router asks the config server.
    pub store: Option<Store>,
    pub cursors: cursors::Owners,
    generation: AtomicU64,
    /// Names the generation to others.
    generation_id: Mutex<ObjectId>,
    cache: Mutex<HashMap<UserName, (u64, Arc<User>)>>,
    /// There was a user once: the localhost exception is over.
    users_seen: AtomicBool,
    /// Makes the salts of users that are not there.
    pretended: [u8; 32],
    pub mechanisms_asked: Counter,
    pub counters: [MechanismCounters; 3],
}

impl Auth {
    pub fn new(enabled: bool, store: Option<Store>) -> Auth {
        Auth {
            enabled,
            sends_certificate: Arc::default(),
            key: None,
            system: Arc::new(User::system()),
            store,
            cursors: cursors::Owners::default(),
            generation: AtomicU64::new(1),
            generation_id: Mutex::new(ObjectId(runtime::random())),
            cache: Mutex::default(),
            users_seen: AtomicBool::new(false),
            pretended: runtime::random(),
            mechanisms_asked: Counter::default(),
            counters: Default::default(),
        }
    }
    /// Gives the node the cluster's key. All nodes that have it pretend the same salts for users that are not there, so that their
    /// answers do not tell such users from others.
    pub fn set_key(&mut self, key: Option<Arc<ClusterKey>>) {
        if let Some(key) = &key {
            self.pretended = key.secret_for("salts of users that are not there");
        }
        self.key = key;
    }
    pub fn generation(&self) -> u64 {
        self.generation.load(SeqCst)
    }
    pub fn generation_id(&self) -> ObjectId {
        *self.generation_id.lock()
    }
    /// Every user is read anew before its next request.
    pub fn invalidate(&self) {
        *self.generation_id.lock() = ObjectId(runtime::random());
        self.generation.fetch_add(1, SeqCst);
        self.cache.lock().clear();
    }
    pub fn counters_of(&self, mechanism: &str) -> Option<&MechanismCounters> {
        MECHANISMS.iter().position(|name| *name == mechanism).map(|at| &self.counters[at])
    }
    /// `security.authentication` of serverStatus.
    pub fn status(&self) -> Document {
        let tries = |t: &Tries| doc! { "received": t.received.get(), "successful": t.successful.get() };
        let mechanism = |(name, c): (&&str, &MechanismCounters)| {
            let counts = doc! {
                "speculativeAuthenticate": tries(&c.speculative), "clusterAuthenticate": tries(&c.cluster),
                "authenticate": tries(&c.all),
            };
            (name.to_string(), document::Value::from(counts))
        };
        let mechanisms: Document = MECHANISMS.iter().zip(&self.counters).map(mechanism).collect();
        doc! { "saslSupportedMechsReceived": self.mechanisms_asked.get(), "mechanisms": mechanisms }
    }
}

/// Tells [`Auth`] of changes that come past the commands: by insert, update and delete.
pub struct Invalidates(pub std::sync::Weak<crate::service::Service>);

impl Invalidates {
    fn tell(&self) {
        if let Some(service) = self.0.upgrade() {
            service.auth.invalidate();
        }
    }
}
impl node::observer::WriteObserver for Invalidates {
    fn inserted(&self, _: &str, _: document::Doc<'_>) {
        self.tell();
    }
    fn updated(&self, _: &str, _: document::Doc<'_>) {
        self.tell();
    }
    fn deleted(&self, _: &str, _: document::Doc<'_>) {
        self.tell();
    }
}
