//! The components of the log and how much each says: the parameter `logComponentVerbosity`.
//!
//! A component with -1 says as much as the one above it. Log lines here know only the level of the whole, which is also the
//! parameter `logLevel`; what is set of single components is kept and shown.

use document::{Document, Result, Value, bail};

/// The level of a component within its document.
pub const VERBOSITY: &str = "verbosity";

/// By their paths, those above before those below them.
const COMPONENTS: &[&str] = &[
    "accessControl",
    "assert",
    "command",
    "control",
    "executor",
    "ftdc",
    "geo",
    "index",
    "network",
    "network.asio",
    "network.bridge",
    "network.connectionPool",
    "processHealth",
    "query",
    "query.rejected",
    "queryStats",
    "replication",
    "replication.election",
    "replication.heartbeats",
    "replication.initialSync",
    "replication.rollback",
    "sharding",
    "sharding.migration",
    "sharding.rangeDeleter",
    "storage",
    "storage.journal",
    "storage.recovery",
    "storage.wt",
    "storage.wt.wtBackup",
    "storage.wt.wtCheckpoint",
    "storage.wt.wtCompact",
    "storage.wt.wtEviction",
    "storage.wt.wtHS",
    "storage.wt.wtRecovery",
    "storage.wt.wtRTS",
    "storage.wt.wtSalvage",
    "storage.wt.wtTimestamp",
    "storage.wt.wtTransaction",
    "storage.wt.wtVerify",
    "storage.wt.wtWriteLog",
    "test",
    "tracking",
    "transaction",
    "write",
];

/// The tree before anything is set.
pub fn initial() -> Document {
    let mut tree = Document::new();
    tree.push(VERBOSITY, 0);
    for path in COMPONENTS {
        let (above, name) = path.rsplit_once('.').unwrap_or(("", path));
        let parent = above.split('.').filter(|step| !step.is_empty()).try_fold(&mut tree, below);
        if let Some(parent) = parent {
            let mut component = Document::new();
            component.push(VERBOSITY, -1);
            parent.push(name, component);
        }
    }
    tree
}

fn below<'a>(tree: &'a mut Document, name: &str) -> Option<&'a mut Document> {
    match tree.get_mut(name) {
        Some(Value::Document(component)) => Some(component),
        _ => None,
    }
}

/// The tree with what `given` says of it, which has the tree's shape as far as it goes.
///
/// # Errors
/// BadValue (2) for a component that there is not, and for a level that is none.
pub fn changed(tree: &Document, given: &Document) -> Result<Document> {
    let mut tree = tree.clone();
    merge(&mut tree, given, "")?;
    if tree.get_i64(VERBOSITY).is_some_and(|level| level < 0) {
        tree.insert(VERBOSITY, 0);
    }
    Ok(tree)
}

fn merge(tree: &mut Document, given: &Document, above: &str) -> Result<()> {
    for (name, value) in given.iter() {
        if name == VERBOSITY {
            set_level(tree, value, above)?;
            continue;
        }
        let Some(component) = below(tree, name) else {
            bail!(BAD_VALUE, "Invalid component name '{above}{name}'")
        };
        match value {
            Value::Document(given) => merge(component, given, &format!("{above}{name}."))?,
            // A level stands for a document with nothing else.
            level => set_level(component, level, &format!("{above}{name}."))?,
        }
    }
    Ok(())
}

fn set_level(component: &mut Document, level: &Value, above: &str) -> Result<()> {
    match level.as_f64().filter(|level| (-1.0..=5.0).contains(level)) {
        Some(level) => component.insert(VERBOSITY, level as i32),
        None => {
            bail!(BAD_VALUE, "Expected '{above}{VERBOSITY}' to be a level of the log, but found {level:?}")
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn what_is_given_changes_the_tree_and_nothing_else() {
        let given =
            doc! { "verbosity": 2, "storage": { "wt": { "wtHS": { "verbosity": 3.0 } }, "journal": 4 } };
        let tree = changed(&initial(), &given).unwrap();
        let level = |path: &str| tree.get_path(path).and_then(Value::as_i64);
        let levels =
            ["verbosity", "storage.wt.wtHS.verbosity", "storage.wt.verbosity", "storage.journal.verbosity"];
        assert_eq!(levels.map(level), [2, 3, -1, 4].map(Some));
        assert_eq!(changed(&tree, &doc! { "verbosity": -1 }).unwrap().get_i64("verbosity"), Some(0));
    }

    #[test]
    fn what_is_no_component_or_level_is_refused() {
        for given in [
            doc! { "unheardOf": { "verbosity": 1 } },
            doc! { "storage": { "query": { "verbosity": 1 } } },
            doc! { "storage": true },
            doc! { "storage": { "verbosity": "1" } },
            doc! { "verbosity": 6 },
        ] {
            assert_eq!(
                changed(&initial(), &given).unwrap_err().code,
                document::codes::BAD_VALUE,
                "{given:?}"
            );
        }
    }
}
