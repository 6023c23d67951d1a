//! Whose sessions and operations a request is shown: where somebody has logged in its own, unless it asks for others'.

use super::user::UserName;
use crate::operation::{ClientInfo, SessionId};
use document::{Document, Value};

/// Owners of sessions, by digest (`lsid.uid`).
#[derive(Debug, PartialEq, Eq)]
pub enum Owners {
    Everybody,
    Of(Vec<[u8; 32]>),
}

impl Owners {
    /// Those that `$listSessions` and `$listLocalSessions` ask for: `{allUsers: true}`, `{users: [{user, db}, ..]}`, or the client itself.
    pub fn listed(spec: &Document, client: &ClientInfo) -> Owners {
        if spec.get_bool("allUsers") == Some(true) {
            return Owners::Everybody;
        }
        match named(spec) {
            users if users.is_empty() => Owners::own(client),
            users => Owners::Of(users.iter().map(UserName::digest).collect()),
        }
    }
    /// Those of `$currentOp`, which shows everybody's operations only with `{allUsers: true}`.
    pub fn operating(spec: &Document, client: &ClientInfo) -> Owners {
        match spec.get_bool("allUsers") {
            Some(true) => Owners::Everybody,
            _ => Owners::own(client),
        }
    }
    /// The client's user; where nobody logs in nothing belongs to anybody.
    pub fn own(client: &ClientInfo) -> Owners {
        client.user().map_or(Owners::Everybody, |user| Owners::Of(vec![user.digest]))
    }
    pub fn include(&self, digest: &[u8; 32]) -> bool {
        match self {
            Owners::Everybody => true,
            Owners::Of(list) => list.contains(digest),
        }
    }
    /// The same for what may belong to nobody.
    pub fn include_some(&self, session: Option<&SessionId>) -> bool {
        *self == Owners::Everybody || session.is_some_and(|id| self.include(&id.uid))
    }
    /// The same for a row of `$currentOp` that comes from another node, which tells the owner of a session alone.
    pub fn include_row(&self, row: &Document) -> bool {
        let digest = match row.get_path("lsid.uid") {
            Some(Value::Binary(b)) => <[u8; 32]>::try_from(&b.bytes[..]).ok(),
            _ => None,
        };
        *self == Owners::Everybody || digest.is_some_and(|digest| self.include(&digest))
    }
}

/// The users of `{users: [{user, db}, ..]}`.
pub fn named(spec: &Document) -> Vec<UserName> {
    let users = spec.get_array("users").into_iter().flatten().filter_map(|v| v.as_document());
    users.filter_map(|d| Some(UserName::new(d.get_str("user")?, d.get_str("db")?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::User;
    use document::doc;
    use std::sync::Arc;

    #[test]
    fn a_user_is_shown_its_own_unless_it_names_others() {
        let (client, user) = (ClientInfo::default(), Arc::new(User::system()));
        assert_eq!(Owners::listed(&doc! {}, &client), Owners::Everybody);
        client.set_user(Some(user.clone()));
        assert_eq!(Owners::listed(&doc! {}, &client), Owners::Of(vec![user.digest]));
        assert_eq!(Owners::listed(&doc! { "allUsers": true }, &client), Owners::Everybody);
        let other = UserName::new("u", "d");
        let asked = Owners::listed(&doc! { "users": [other.to_document()] }, &client);
        assert!(asked.include(&other.digest()) && !asked.include(&user.digest));
        assert_eq!(Owners::operating(&doc! { "allUsers": false }, &client), Owners::Of(vec![user.digest]));
    }

    #[test]
    fn a_row_without_an_owner_is_shown_to_those_who_see_all() {
        let own = Owners::Of(vec![[1; 32]]);
        let id = SessionId::of_client([0; 16], [1; 32]);
        assert!(own.include_row(&doc! { "lsid": id.to_document() }) && !own.include_row(&doc! {}));
        assert!(
            own.include_some(Some(&id)) && !own.include_some(None) && Owners::Everybody.include_row(&doc! {})
        );
    }
}
