//! The documents of users and roles on the node that keeps them.
//!
//! ```text
//! admin.system.users    {_id: "db.user", userId, user, db, credentials, customData?, roles, authenticationRestrictions?}
//! admin.system.roles    {_id: "db.role", role, db, privileges, roles, authenticationRestrictions?}
//! admin.system.version  {_id: "authSchema", currentVersion: 5}
//! ```
//! Commands that change them run one after another ([`Store::lock`]): a grant and the drop of the role that it grants must
//! not pass each other.

use super::role::{Resolved, Role, RoleName, resolve};
use super::user::UserName;
use crate::local::LocalClient;
use crate::write::unit::{BatchWrite, Origin};
use crate::{Node, Operation};
use document::{Document, Result, Value, bail, doc, err};
use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard};

pub const USERS: &str = "admin.system.users";
pub const ROLES: &str = "admin.system.roles";
const VERSION: &str = "admin.system.version";
/// Of the form of these documents. DO NOT CHANGE.
pub const SCHEMA_VERSION: i32 = 5;

pub struct Store {
    client: LocalClient,
    writes: Mutex<()>,
}

impl Store {
    pub fn new(node: Arc<Node>) -> Store {
        Store { client: LocalClient::new(node), writes: Mutex::new(()) }
    }
    pub fn node(&self) -> &Arc<Node> {
        self.client.node()
    }
    /// Held by a command from its first look to its write.
    pub async fn lock(&self) -> MutexGuard<'_, ()> {
        self.writes.lock().await
    }

    /// Whether there is no user and no role at all.
    pub fn is_empty(&self) -> bool {
        let empty = |ns: &str| {
            let slot = self.node().namespaces.slot(ns);
            let state = slot.read_unchecked();
            state.collection.as_ref().is_none_or(|c| c.len() == 0)
        };
        empty(USERS) && empty(ROLES)
    }

    pub fn user(&self, name: &UserName) -> Result<Option<Document>> {
        self.client.find_one(USERS, &doc! { "_id": name.id() })
    }
    /// All users, or those of one database, by user and database.
    pub fn users(&self, db: Option<&str>) -> Result<Vec<Document>> {
        let mut found = self.client.find(USERS, &of_database(db))?;
        let key = |d: &Document| {
            (d.get_str("user").unwrap_or("").to_string(), d.get_str("db").unwrap_or("").to_string())
        };
        found.sort_by_key(key);
        Ok(found)
    }
    /// A built-in role or a stored one.
    pub fn role(&self, name: &RoleName) -> Result<Option<Role>> {
        if let Some(role) = Role::builtin(name) {
            return Ok(Some(role));
        }
        let found = self.client.find_one(ROLES, &doc! { "_id": name.id() })?;
        Ok(found.as_ref().and_then(Role::of_stored))
    }
    /// Stored roles, of one database or of all.
    pub fn roles(&self, db: Option<&str>) -> Result<Vec<Role>> {
        let found = self.client.find(ROLES, &of_database(db))?;
        let mut roles: Vec<Role> = found.iter().filter_map(Role::of_stored).collect();
        roles.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(roles)
    }
    pub fn resolve(&self, direct: &[RoleName]) -> Result<Resolved> {
        resolve(direct, |name| self.role(name))
    }
    /// A user's document with `inheritedRoles`, `inheritedPrivileges`, `inheritedAuthenticationRestrictions`.
    pub fn resolved_user(&self, name: &UserName) -> Result<Option<Document>> {
        let Some(mut d) = self.user(name)? else { return Ok(None) };
        self.add_inherited(&mut d)?;
        Ok(Some(d))
    }
    pub fn add_inherited(&self, user: &mut Document) -> Result<()> {
        let resolved = self.resolve(&RoleName::of_stored(user.get_array("roles")))?;
        user.push("inheritedRoles", RoleName::to_values(&resolved.roles));
        user.push("inheritedPrivileges", resolved.privileges.to_value());
        user.push("inheritedAuthenticationRestrictions", Value::Array(resolved.restrictions));
        Ok(())
    }
    /// # Errors
    /// RoleNotFound (31).
    pub fn require_role(&self, name: &RoleName) -> Result<Role> {
        self.role(name)?.ok_or_else(|| err!(ROLE_NOT_FOUND, "Could not find role: {}", name.shown()))
    }
    /// Whether `name` would hold itself if it held `roles`.
    pub fn would_be_circular(&self, name: &RoleName, roles: &[RoleName]) -> Result<bool> {
        Ok(roles.contains(name) || self.resolve(roles)?.roles.contains(name))
    }

    /// Makes the collections, when they are not there yet, with their indexes.
    async fn prepare(&self) -> Result<()> {
        for (ns, field) in [(USERS, "user"), (ROLES, "role")] {
            if self.node().namespaces.slot(ns).read_unchecked().collection.is_some() {
                continue;
            }
            let key = doc! { field: 1, "db": 1 };
            let options = doc! { "name": format!("{field}_1_db_1"), "unique": true };
            self.client.ensure_collection(ns, &[(key, options)]).await?;
        }
        let schema = doc! { "_id": "authSchema", "currentVersion": SCHEMA_VERSION };
        match self.client.find_one(VERSION, &doc! { "_id": "authSchema" })? {
            Some(found) if found.get_i64("currentVersion").unwrap_or(0) < i64::from(SCHEMA_VERSION) => {
                bail!(
                    69,
                    "User and role management commands require auth data to have at least schema version 5 but found {}",
                    found.get_i64("currentVersion").unwrap_or(0)
                )
            }
            Some(_) => Ok(()),
            None => self.client.put(VERSION, &schema).await,
        }
    }

    /// Adds a document; `taken` is the error when its name exists.
    pub async fn insert(&self, op: &Operation, ns: &str, d: &Document, taken: document::Error) -> Result<()> {
        self.prepare().await?;
        let bytes = d.to_doc_buf();
        let slot = self.node().namespaces.slot(ns);
        let done = self.node().write(op, &slot, |unit| {
            unit.ensure_exists();
            unit.insert(bytes.doc(), Origin::default()).map(|_| ())
        });
        match done.await {
            Err(e) if e.code == document::codes::DUPLICATE_KEY => Err(taken),
            done => done.map(|_| ()),
        }
    }
    /// Puts documents in the place of those of the same `_id`, and removes others: all of it or nothing.
    pub async fn replace(
        &self,
        op: &Operation,
        changed: Vec<(&str, Document)>,
        gone: Vec<(&str, String)>,
    ) -> Result<()> {
        self.prepare().await?;
        let put = |(ns, doc): (&str, Document)| BatchWrite::Put { ns: ns.to_string(), doc };
        let delete =
            |(ns, id): (&str, String)| BatchWrite::Delete { ns: ns.to_string(), id: Value::from(id) };
        let writes: Vec<BatchWrite> =
            changed.into_iter().map(put).chain(gone.into_iter().map(delete)).collect();
        self.node().commit_batch(op, &writes).await.map(drop)
    }
}

fn of_database(db: Option<&str>) -> Document {
    db.map_or_else(Document::new, |db| doc! { "db": db })
}
