//! Privileges: a resource and what may be done to it; and a user's privileges as a whole.

use super::action::{Action, ActionSet};
use super::resource::{Resource, Target};
use document::{Document, Result, Value, bail, doc};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privilege {
    pub resource: Resource,
    pub actions: ActionSet,
}

impl Privilege {
    /// `{resource: {..}, actions: [..]}`.
    ///
    /// # Errors
    /// FailedToParse (9), TypeMismatch (14).
    pub fn parse(value: &Value) -> Result<Privilege> {
        let Some(d) = value.as_document() else {
            bail!(TYPE_MISMATCH, "a privilege must be a document, found {}", value.type_name())
        };
        if let Some(name) = d.keys().find(|name| !matches!(*name, "resource" | "actions")) {
            bail!(FAILED_TO_PARSE, "Unrecognized field in privilege: {name}");
        }
        let Some(resource) = d.get_document("resource") else {
            bail!(FAILED_TO_PARSE, "Missing expected field \"resource\"")
        };
        let Some(actions) = d.get_array("actions") else {
            bail!(FAILED_TO_PARSE, "Missing expected field \"actions\"")
        };
        Ok(Privilege { resource: Resource::parse(resource)?, actions: ActionSet::parse(actions)? })
    }
    pub fn to_document(&self) -> Document {
        doc! { "resource": self.resource.to_document(), "actions": self.actions.to_value() }
    }
}

/// Privileges, one for each resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Privileges(Vec<Privilege>);

impl Privileges {
    pub fn add(&mut self, privilege: Privilege) {
        match self.0.iter_mut().find(|own| own.resource == privilege.resource) {
            Some(own) => own.actions = own.actions.or(privilege.actions),
            None => self.0.push(privilege),
        }
    }
    /// Takes the actions away from an equal resource; a privilege without actions goes.
    pub fn remove(&mut self, privilege: &Privilege) {
        if let Some(own) = self.0.iter_mut().find(|own| own.resource == privilege.resource) {
            own.actions = own.actions.without(privilege.actions);
        }
        self.0.retain(|own| !own.actions.is_empty());
    }
    pub fn extend(&mut self, privileges: impl IntoIterator<Item = Privilege>) {
        privileges.into_iter().for_each(|privilege| self.add(privilege));
    }
    /// Whether the action is allowed on the target by some of them.
    pub fn allow(&self, target: &Target, action: Action) -> bool {
        self.0.iter().any(|own| own.actions.contains(action) && own.resource.covers(target))
    }
    /// Whether all the actions are allowed.
    pub fn allow_all(&self, target: &Target, actions: ActionSet) -> bool {
        let mut missing = actions;
        for own in &self.0 {
            if own.resource.covers(target) {
                missing = missing.without(own.actions);
            }
        }
        missing.is_empty()
    }
    /// Whether anything at all may be done to the target.
    pub fn allow_some(&self, target: &Target) -> bool {
        self.0.iter().any(|own| !own.actions.is_empty() && own.resource.covers(target))
    }
    /// Whether anything may be done in a database.
    pub fn some_in(&self, db: &str) -> bool {
        self.0.iter().any(|own| !own.actions.is_empty() && own.resource.is_in(db))
    }
    pub fn iter(&self) -> impl Iterator<Item = &Privilege> {
        self.0.iter()
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub fn parse(values: &[Value]) -> Result<Privileges> {
        let mut privileges = Privileges::default();
        for value in values {
            privileges.add(Privilege::parse(value)?);
        }
        Ok(privileges)
    }
    /// What was stored: privileges that this version does not know are left out.
    pub fn of_stored(values: &[Value]) -> Privileges {
        let mut privileges = Privileges::default();
        privileges.extend(values.iter().filter_map(|value| Privilege::parse(value).ok()));
        privileges
    }
    pub fn to_value(&self) -> Value {
        Value::Array(self.0.iter().map(|p| Value::from(p.to_document())).collect())
    }
}
