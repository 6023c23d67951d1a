//! Roles: their names, their documents, and all that a set of roles comes to.

use super::builtin;
use super::privilege::Privileges;
use document::{Document, Result, Value, bail, doc, err};
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoleName {
    pub role: String,
    pub db: String,
}

impl RoleName {
    pub fn new(role: &str, db: &str) -> RoleName {
        RoleName { role: role.to_string(), db: db.to_string() }
    }
    /// `_id` of the role's document.
    pub fn id(&self) -> String {
        format!("{}.{}", self.db, self.role)
    }
    /// `role@db`, as messages name it.
    pub fn shown(&self) -> String {
        format!("{}@{}", self.role, self.db)
    }
    pub fn is_builtin(&self) -> bool {
        builtin::exists(&self.role, &self.db)
    }
    pub fn to_document(&self) -> Document {
        doc! { "role": self.role.as_str(), "db": self.db.as_str() }
    }
    /// A name as commands take it: a string is a role of `db`, a document `{role, db}` names its own.
    ///
    /// # Errors
    /// BadValue (2), TypeMismatch (14), NoSuchKey (4).
    pub fn parse(value: &Value, db: &str) -> Result<RoleName> {
        let name = match value {
            Value::String(role) => RoleName::new(role, db),
            Value::Document(d) => {
                let text = |name: &str| match d.get(name) {
                    Some(Value::String(s)) => Ok(s.as_str()),
                    Some(v) => Err(err!(
                        TYPE_MISMATCH,
                        "\"{name}\" had the wrong type. Expected string, found {}",
                        v.type_name()
                    )),
                    None => Err(err!(4, "Missing expected field \"{name}\"")),
                };
                RoleName::new(text("role")?, text("db")?)
            }
            other => {
                bail!(BAD_VALUE, "Role names must be either strings or objects, found {}", other.type_name())
            }
        };
        if name.role.is_empty() {
            bail!(BAD_VALUE, "Role name must be non-empty");
        }
        if name.role.contains('\0') || name.db.contains('\0') {
            bail!(BAD_VALUE, "Role names must not contain NUL");
        }
        Ok(name)
    }
    /// The `{role, db}` documents of a list that was stored or resolved.
    pub fn of_stored(values: Option<&Vec<Value>>) -> Vec<RoleName> {
        let name = |v: &Value| {
            let d = v.as_document()?;
            Some(RoleName::new(d.get_str("role")?, d.get_str("db")?))
        };
        values.map(|v| v.iter().filter_map(name).collect()).unwrap_or_default()
    }
    pub fn to_values(names: &[RoleName]) -> Value {
        Value::Array(names.iter().map(|name| Value::from(name.to_document())).collect())
    }
}

/// A role as it is by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Role {
    pub name: RoleName,
    pub builtin: bool,
    pub privileges: Privileges,
    pub roles: Vec<RoleName>,
    /// `authenticationRestrictions`, where it has some.
    pub restrictions: Option<Value>,
}

impl Role {
    pub fn builtin(name: &RoleName) -> Option<Role> {
        Some(Role {
            name: name.clone(),
            builtin: true,
            privileges: builtin::privileges(&name.role, &name.db)?,
            roles: Vec::new(),
            restrictions: None,
        })
    }
    pub fn of_stored(d: &Document) -> Option<Role> {
        Some(Role {
            name: RoleName::new(d.get_str("role")?, d.get_str("db")?),
            builtin: false,
            privileges: d.get_array("privileges").map(|v| Privileges::of_stored(v)).unwrap_or_default(),
            roles: RoleName::of_stored(d.get_array("roles")),
            restrictions: d.get("authenticationRestrictions").cloned(),
        })
    }
    pub fn to_stored(&self) -> Document {
        let mut d = doc! {
            "_id": self.name.id(), "role": self.name.role.as_str(), "db": self.name.db.as_str(),
            "privileges": self.privileges.to_value(), "roles": RoleName::to_values(&self.roles),
        };
        if let Some(restrictions) = &self.restrictions {
            d.push("authenticationRestrictions", restrictions.clone());
        }
        d
    }
}

/// What some roles come to, with everything they inherit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolved {
    /// The roles themselves and those that they hold, each once.
    pub roles: Vec<RoleName>,
    pub privileges: Privileges,
    /// The restrictions of each role that has some.
    pub restrictions: Vec<Value>,
}

/// Follows the roles to all that they hold. A role that is not there is left out.
///
/// # Errors
/// Those of `lookup`.
pub fn resolve(direct: &[RoleName], lookup: impl Fn(&RoleName) -> Result<Option<Role>>) -> Result<Resolved> {
    let mut resolved = Resolved::default();
    let mut seen = BTreeSet::new();
    let mut waiting: Vec<RoleName> = direct.iter().rev().cloned().collect();
    while let Some(name) = waiting.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let Some(role) = lookup(&name)? else { continue };
        resolved.roles.push(name);
        resolved.privileges.extend(role.privileges.iter().cloned());
        resolved.restrictions.extend(role.restrictions);
        waiting.extend(role.roles.into_iter().rev());
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_followed_once_each_and_a_circle_ends() {
        let role = |name: &RoleName| {
            let next = match name.role.as_str() {
                "a" => vec![RoleName::new("b", "d"), RoleName::new("read", "d")],
                "b" => vec![RoleName::new("a", "d"), RoleName::new("gone", "d")],
                "read" => return Ok(Role::builtin(name)),
                _ => return Ok(None),
            };
            Ok(Some(Role {
                name: name.clone(),
                builtin: false,
                privileges: Privileges::default(),
                roles: next,
                restrictions: Some(Value::from(name.role.as_str())),
            }))
        };
        let resolved = resolve(&[RoleName::new("a", "d")], role).unwrap();
        let names: Vec<&str> = resolved.roles.iter().map(|r| r.role.as_str()).collect();
        assert_eq!(names, ["a", "b", "read"]);
        assert_eq!(resolved.restrictions.len(), 2);
        assert!(!resolved.privileges.is_empty());
    }
}
