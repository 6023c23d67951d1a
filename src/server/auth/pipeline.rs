//! What a pipeline needs: the sum of what its stages need.
//!
//! A pipeline that does not begin with a source of its own reads its collection. Views count as themselves: what is behind
//! one was asked of the user who made it.

use super::needs::Asker;
use document::{Doc, ValueRef};
use node::auth::{Action::*, Target};

/// Whether the user may run the pipeline on `collection` of `db`; an empty name is the database.
pub fn may_run(
    asker: &Asker<'_>,
    db: &str,
    collection: &str,
    pipeline: Option<ValueRef<'_>>,
    bypass: bool,
) -> bool {
    let run = Run { asker, db: db.to_string(), collection: collection.to_string(), bypass };
    run.all(pipeline.and_then(|p| p.as_array()))
}

/// Pipelines within pipelines, as deep as a document nests.
struct Run<'r, 'a> {
    asker: &'r Asker<'a>,
    db: String,
    collection: String,
    bypass: bool,
}

/// Stages that bring their own documents.
fn is_source(stage: &str) -> bool {
    matches!(
        stage,
        "$collStats"
            | "$indexStats"
            | "$planCacheStats"
            | "$currentOp"
            | "$listSessions"
            | "$listLocalSessions"
            | "$listCachedAndActiveUsers"
            | "$operationMetrics"
            | "$changeStream"
            | "$documents"
            | "$queue"
            | "$shardedDataDistribution"
            | "$listSampledQueries"
            | "$queryStats"
            | "$querySettings"
            | "$listSearchIndexes"
            | "$listCatalog"
            | "$listClusterCatalog"
            | "$mergeCursors"
    ) || stage.starts_with("$_internal")
}

/// The pipeline that a stage runs on what it joins.
fn nested<'a>(spec: Doc<'a>) -> Option<Doc<'a>> {
    spec.get("pipeline").and_then(|p| p.as_array())
}

impl Run<'_, '_> {
    fn all(&self, pipeline: Option<Doc<'_>>) -> bool {
        let stages: Vec<Doc<'_>> =
            pipeline.into_iter().flat_map(|p| p.iter()).filter_map(|e| e.value().as_document()).collect();
        let first = stages.first().and_then(|d| d.iter().next()).map_or("", |e| e.name());
        (is_source(first) || self.asker.may(&self.target(), Find))
            && stages.iter().all(|stage| stage.iter().next().is_none_or(|e| self.stage(e.name(), e.value())))
    }

    fn target(&self) -> Target {
        Target::Namespace(self.db.clone(), self.collection.clone())
    }
    /// The request on another namespace: of a stage that reads it.
    fn on(&self, db: Option<&str>, collection: &str) -> Self {
        Run {
            asker: self.asker,
            db: db.unwrap_or(&self.db).to_string(),
            collection: collection.to_string(),
            bypass: self.bypass,
        }
    }

    fn stage(&self, name: &str, value: ValueRef<'_>) -> bool {
        let asker = self.asker;
        let spec = value.as_document().unwrap_or(Doc::empty());
        let flag = |field: &str| spec.get(field).is_some_and(|v| v.truthy());
        match name {
            "$lookup" => self.other(spec.get("from")).all(nested(spec)),
            "$unionWith" => self.unites(value, spec).all(nested(spec)),
            "$graphLookup" => asker.may(&self.other(spec.get("from")).target(), Find),
            "$facet" => spec.iter().all(|e| {
                // What a facet is given it does not read again.
                let stages = e.value().as_array();
                stages
                    .into_iter()
                    .flat_map(|p| p.iter())
                    .filter_map(|s| s.value().as_document())
                    .all(|stage| stage.iter().next().is_none_or(|s| self.stage(s.name(), s.value())))
            }),
            "$out" => self.writes(&self.other(Some(value)).target(), &[Insert, Remove]),
            "$merge" => self.merges(value, spec),
            "$collStats" => asker.may(&self.target(), CollStats),
            "$indexStats" => asker.may(&self.target(), IndexStats),
            "$planCacheStats" => asker.may(&self.target(), PlanCacheRead),
            "$listSearchIndexes" => asker.may(&self.target(), ListSearchIndexes),
            "$currentOp" => {
                let others = flag("allUsers") || (asker.service.is_router() && !flag("localOps"));
                (!others && asker.has_logged_in()) || asker.on_cluster(Inprog)
            }
            "$listSessions" | "$listLocalSessions" => self.lists_sessions(spec),
            "$listCachedAndActiveUsers" => asker.may(&Target::AnyNormal, ListCachedAndActiveUsers),
            "$operationMetrics" => asker.on_cluster(OperationMetrics),
            "$changeStream" => {
                asker.may_all(&self.watched(flag("allChangesForCluster")), &[ChangeStream, Find])
            }
            "$shardedDataDistribution" => asker.on_cluster(ShardedDataDistribution),
            "$listSampledQueries" => asker.on_cluster(ListSampledQueries),
            "$queryStats" => {
                let plain = spec.get("transformIdentifiers").is_none();
                asker.on_cluster(QueryStatsReadTransformed) && (!plain || asker.on_cluster(QueryStatsRead))
            }
            "$querySettings" => asker.on_cluster(QuerySettings),
            "$listClusterCatalog" if self.db != "admin" => asker.may(&asker.database(), ListCollections),
            "$listCatalog" | "$listClusterCatalog" => asker.may(&Target::AnyNormal, ListCollections),
            "$_internalAllCollectionStats" => asker.on_cluster(AllCollectionStats),
            "$mergeCursors" => asker.on_cluster(Internal),
            _ => !name.starts_with("$_internal") || asker.on_cluster(Internal),
        }
    }

    /// A stage's `from` or target: a name, or `{db, coll}`.
    fn other(&self, value: Option<ValueRef<'_>>) -> Self {
        match value {
            Some(ValueRef::String(name)) => self.on(None, name),
            Some(ValueRef::Document(d)) => self.on(d.get_str("db"), d.get_str("coll").unwrap_or("")),
            _ => self.on(None, ""),
        }
    }

    /// What a `$unionWith` reads: `"coll"`, or `coll` of the database that it may name. Without either it begins with documents
    /// of its own, as does a `$lookup` without `from`.
    fn unites(&self, value: ValueRef<'_>, spec: Doc<'_>) -> Self {
        match value {
            ValueRef::String(name) => self.on(None, name),
            _ => self.on(spec.get_str("db"), spec.get_str("coll").unwrap_or("")),
        }
    }

    fn writes(&self, target: &Target, actions: &[node::auth::Action]) -> bool {
        self.asker.may_all(target, actions)
            && (!self.bypass || self.asker.may(target, BypassDocumentValidation))
    }

    fn merges(&self, value: ValueRef<'_>, spec: Doc<'_>) -> bool {
        let into = match value {
            ValueRef::String(_) => Some(value),
            _ => spec.get("into"),
        };
        let target = self.other(into).target();
        let matched = spec.get_str("whenMatched").unwrap_or("merge");
        let unmatched = spec.get_str("whenNotMatched").unwrap_or("insert");
        match (matched, unmatched) {
            ("fail", "insert") => self.writes(&target, &[Insert]),
            (_, "insert") => self.writes(&target, &[Insert, Update]),
            _ => self.writes(&target, &[Update]),
        }
    }

    fn lists_sessions(&self, spec: Doc<'_>) -> bool {
        let own = |user: Doc<'_>| {
            let name = &self.asker.user.name;
            user.get_str("user") == Some(&name.user) && user.get_str("db") == Some(&name.db)
        };
        let users = spec.get("users").and_then(|v| v.as_array());
        let others = spec.get("allUsers").is_some_and(|v| v.truthy())
            || users
                .into_iter()
                .flat_map(|l| l.iter())
                .filter_map(|e| e.value().as_document())
                .any(|u| !own(u));
        (!others && self.asker.has_logged_in()) || self.asker.on_cluster(ListSessions)
    }

    /// A stream of a collection, of a database, or of everything.
    fn watched(&self, everything: bool) -> Target {
        match (everything, self.collection.is_empty()) {
            (true, _) => Target::AnyNormal,
            (false, true) => Target::Database(self.db.clone()),
            (false, false) => self.target(),
        }
    }
}
