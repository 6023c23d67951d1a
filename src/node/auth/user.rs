//! A user with everything it may do: what a connection keeps once it has authenticated.

use super::privilege::Privileges;
use super::resource::{Resource, Target};
use super::restriction::{Ends, Restrictions};
use super::role::RoleName;
use super::{Action, ActionSet, Privilege};
use document::{Document, Value, doc};
use sha2::{Digest, Sha256};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserName {
    pub user: String,
    pub db: String,
}

impl UserName {
    pub fn new(user: &str, db: &str) -> UserName {
        UserName { user: user.to_string(), db: db.to_string() }
    }
    /// The identity of the cluster's own members.
    pub fn system() -> UserName {
        UserName::new("__system", "local")
    }
    pub fn is_system(&self) -> bool {
        self.user == "__system" && self.db == "local"
    }
    /// `_id` of the user's document.
    pub fn id(&self) -> String {
        format!("{}.{}", self.db, self.user)
    }
    /// `user@db`, as messages and logs name it.
    pub fn shown(&self) -> String {
        format!("{}@{}", self.user, self.db)
    }
    pub fn to_document(&self) -> Document {
        doc! { "user": self.user.as_str(), "db": self.db.as_str() }
    }
    /// The owner of this user's sessions: `lsid.uid`.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.shown().as_bytes()).into()
    }
}

/// A user as it was when its document was read.
#[derive(Clone, Debug)]
pub struct User {
    pub name: UserName,
    /// Tells a user from another of the same name that was made after it was dropped.
    pub id: Option<[u8; 16]>,
    /// All roles, inherited ones included.
    pub roles: Vec<RoleName>,
    pub privileges: Privileges,
    /// The stored `credentials`.
    pub credentials: Document,
    restrictions: Vec<Restrictions>,
    pub digest: [u8; 32],
    /// Its roles stand in its certificate; it is stored nowhere.
    pub from_certificate: bool,
}

impl User {
    /// From a user's document with what it inherits: a reply of `usersInfo`, or [`super::store::Store::resolved_user`].
    pub fn of_resolved(d: &Document) -> Option<User> {
        let name = UserName::new(d.get_str("user")?, d.get_str("db")?);
        let lists = d.get_array("inheritedAuthenticationRestrictions");
        let own = d.get("authenticationRestrictions");
        // A list that cannot be read admits nobody rather than everybody.
        let read = |v: &Value| Restrictions::parse(v).unwrap_or_else(|_| Restrictions::nothing());
        Some(User {
            id: d.get("userId").and_then(Value::as_uuid),
            roles: RoleName::of_stored(d.get_array("inheritedRoles")),
            privileges: d
                .get_array("inheritedPrivileges")
                .map(|v| Privileges::of_stored(v))
                .unwrap_or_default(),
            credentials: d.get_document("credentials").cloned().unwrap_or_default(),
            restrictions: own.into_iter().chain(lists.into_iter().flatten()).map(read).collect(),
            digest: name.digest(),
            from_certificate: false,
            name,
        })
    }
    /// A member of the cluster: it may do everything.
    pub fn system() -> User {
        let mut privileges = Privileges::default();
        privileges.add(Privilege { resource: Resource::Any, actions: ActionSet::all() });
        User {
            name: UserName::system(),
            id: None,
            roles: vec![RoleName::new("__system", "local")],
            privileges,
            credentials: Document::new(),
            restrictions: Vec::new(),
            digest: UserName::system().digest(),
            from_certificate: false,
        }
    }
    /// The same user under one restriction more.
    pub fn restricted(mut self, to: Restrictions) -> User {
        self.restrictions.push(to);
        self
    }
    pub fn is_system(&self) -> bool {
        self.name.is_system()
    }
    /// Somebody without a name.
    pub fn nobody(privileges: Privileges) -> User {
        User { name: UserName::new("", ""), privileges, roles: Vec::new(), ..User::system() }
    }
    pub fn may(&self, target: &Target, action: Action) -> bool {
        self.privileges.allow(target, action)
    }
    /// Whether the restrictions of the user and its roles let it log in over this connection.
    pub fn admitted(&self, ends: &Ends) -> bool {
        self.restrictions.iter().all(|list| list.admit(ends))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_sessions_is_the_digest_of_the_name() {
        assert_eq!(
            document::encoding::hex(&UserName::new("user", "admin").digest()),
            "78e672a9f1df895a5fbe23c35a0004466ccd167529f1405d95628de7416ff5fa"
        );
    }

    #[test]
    fn an_unreadable_restriction_admits_nobody() {
        let d = doc! { "user": "u", "db": "d", "authenticationRestrictions": [{"clientSource": "nonsense"}] };
        let user = User::of_resolved(&d).unwrap();
        assert!(!user.admitted(&Ends { client: "127.0.0.1".parse().ok(), server: None }));
    }
}
