//! Which versions of the API clients speak, by the names of their applications: `serverStatus.metrics.apiVersions`.
//!
//! A connection speaks one version as a rule, so it is asked first whether it has been counted with it.

use document::{Document, Value};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};

/// Names that are kept; later ones are not counted, whoever makes them up.
const NAMES_MAX: usize = 1000;

#[derive(Default)]
pub struct ApiVersions(Mutex<BTreeMap<String, BTreeSet<&'static str>>>);

impl ApiVersions {
    /// A version as it is counted, with its bit in [`node::operation::ClientInfo::api_versions`].
    pub fn known(version: Option<&str>) -> (&'static str, u8) {
        match version {
            None => ("default", 1),
            Some("1") => ("1", 2),
            Some(_) => ("2", 4),
        }
    }
    pub fn note(&self, application: &str, version: &'static str) {
        let mut names = self.0.lock();
        if names.contains_key(application) || names.len() < NAMES_MAX {
            names.entry(application.to_string()).or_default().insert(version);
        }
    }
    pub fn shown(&self) -> Document {
        let list =
            |versions: &BTreeSet<&str>| Value::Array(versions.iter().map(|v| Value::from(*v)).collect());
        self.0.lock().iter().map(|(name, versions)| (name.clone(), list(versions))).collect()
    }
}
