//! What a pipeline on this node asks for: sources, other collections, and where `$out` and `$merge` write.

use super::aggregate::{Asked, open};
use super::sub_pipelines::SubPipelines;
use crate::auth::Owners;
use crate::ddl::list::cluster_catalog;
use crate::ddl::statistics::{collection_statistics, oplog_statistics, orphan_count};
use crate::operation::SessionId;
use crate::{Node, Operation};
use document::{DocBuf, Document, Result, Value, bail, doc};
use parking_lot::Mutex;
use protocol::version::ShardVersion;
use query::pipeline::{BoxFuture, Documents, HostStage, Namespace, PipelineHost, Run, Source};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The code of everything that needs the search service, which stands beside other servers and not beside this one.
pub const SEARCH_NOT_ENABLED: i32 = 31082;

/// What the refusal says.
pub fn search_not_enabled(stage: &str) -> String {
    let what = match stage {
        "$search" | "$searchMeta" | "$vectorSearch" => "$search and $vectorSearch aggregation stages",
        _ => "Atlas Search Database Commands and the $listSearchIndexes aggregation stage",
    };
    format!(
        "Using {what} requires additional configuration. Please connect to Atlas or an AtlasCLI local deployment to enable."
    )
}

/// What `$out` has written so far.
#[derive(Default)]
pub struct Writing {
    /// The collection that will take the target's name.
    pub(crate) temporary: Mutex<Option<String>>,
    /// `bypassDocumentValidation` of the command.
    pub(super) bypass_validation: bool,
    /// `on` of the `$merge` is the shard key with `_id`.
    pub(super) document_key: bool,
    /// The `$merge` has changed something.
    pub(super) merged: AtomicBool,
}

/// The node as a pipeline sees it, for one command.
pub(crate) struct LocalHost {
    pub node: Arc<Node>,
    pub op: Arc<Operation>,
    pub writing: Arc<Writing>,
    pub others: Arc<SubPipelines>,
    /// The namespace the pipeline runs on.
    pub ns: String,
}

/// `storageStats.scale`: at least 1, and no more than an int32 holds.
fn storage_scale(v: &Value) -> Result<i64> {
    let scale = v.to_holder().get("").and_then(crate::shape::to_long).unwrap_or(0);
    if scale < 1 {
        bail!(BAD_VALUE, "BSON field 'storageStats.scale' value must be >= 1, actual value '{scale}'");
    }
    Ok(scale.min(i64::from(i32::MAX)))
}

impl LocalHost {
    /// For the stages of a change stream, which write nothing.
    pub(crate) fn of_stream(node: Arc<Node>, op: Arc<Operation>, ns: &str) -> LocalHost {
        LocalHost { node, op, writing: Arc::default(), others: Arc::default(), ns: ns.to_string() }
    }

    /// An operation for other namespaces: the versions of the request say nothing of them.
    pub(crate) fn aside(&self) -> Operation {
        let mut op = Operation::internal();
        op.id = self.op.id;
        op.deadline = self.op.deadline;
        op.parent = Some(self.op.clone());
        op.client = self.op.client.clone();
        op.write_concern = self.op.write_concern.clone();
        if self.op.is_subject_to_block() {
            op.note_subject_to_block();
        }
        if let Some(t) = self.op.transaction() {
            op.join(t.clone());
        }
        op
    }

    /// As [`LocalHost::aside`], for what a pipeline reads from or writes to `target`, or beside it. A router sends such a pipeline only
    /// where it saw nothing sharded, and to the database's primary: both must still be so.
    pub(crate) fn towards(&self, target: &str) -> Operation {
        let mut op = self.aside();
        let received = &self.op.received;
        op.received.shard = received.shard.map(|_| ShardVersion::UNTRACKED);
        if storage::split_namespace(target).0 == storage::split_namespace(&self.ns).0 {
            op.received.database = received.database;
        }
        op
    }

    async fn open_source(&self, stage: &HostStage) -> Result<Vec<Document>> {
        let node = &self.node;
        let spec = match &stage.spec {
            Value::Document(d) => d.clone(),
            _ => Document::new(),
        };
        match stage.name {
            "$collStats" => coll_stats(node, &self.op, &self.ns, &spec).await.map(|d| vec![d]),
            "$_internalAllCollectionStats" => self.all_collection_stats(&spec).await,
            "$indexStats" => self.index_stats().await,
            "$planCacheStats" => self.plan_cache_stats(&spec).await,
            "$querySettings" => Ok(node.query_settings.shown(&spec)),
            "$queryStats" => Ok(Vec::new()),
            "$listSampledQueries" => self.sampled_queries(&spec),
            "$currentOp" => match &*node.hooks.read() {
                _ if spec.get_bool("targetAllNodes") == Some(true)
                    && !self.op.client.internal.load(std::sync::atomic::Ordering::Relaxed) =>
                {
                    bail!(FAILED_TO_PARSE, "$currentOp supports targetAllNodes on a mongos only")
                }
                Some(hooks) => Ok(hooks.current_op(&spec, &self.op.client)),
                None => Ok(Vec::new()),
            },
            "$listSessions" => self.stored_sessions(&spec),
            "$listLocalSessions" => Ok(self.own_sessions(&spec)),
            "$listCatalog" => Ok(self.list_catalog()),
            "$listClusterCatalog" => {
                let db = storage::split_namespace(&self.ns).0;
                Ok(cluster_catalog(node, db, spec.get_bool("shards") == Some(true)))
            }
            name @ ("$search" | "$searchMeta" | "$vectorSearch" | "$listSearchIndexes") => {
                Err(document::Error::new(SEARCH_NOT_ENABLED, search_not_enabled(name)))
            }
            "$shardedDataDistribution" => Err(document::Error::new(
                6789101,
                "The $shardedDataDistribution stage can only be run on a router",
            )),
            name => bail!(NOT_IMPLEMENTED, "{name} is known but not implemented in this server"),
        }
    }

    /// The sampled queries of a collection, or of all.
    fn sampled_queries(&self, spec: &Document) -> Result<Vec<Document>> {
        if !self.node.is_replica_set() {
            bail!(ILLEGAL_OPERATION, "$listSampledQueries is not supported on a standalone mongod");
        }
        let of = match spec.get_str("namespace") {
            Some(ns) => doc! { "ns": ns },
            None => Document::new(),
        };
        crate::local::LocalClient::new(self.node.clone()).find(crate::sampling::samples::QUERIES, &of)
    }

    /// The sessions that have been written to the collection, those that the client asks for and may see.
    fn stored_sessions(&self, spec: &Document) -> Result<Vec<Document>> {
        let owners = Owners::listed(spec, &self.op.client);
        let mut found = crate::local::LocalClient::new(self.node.clone()).find(&self.ns, &Document::new())?;
        found.retain(|d| {
            let id = d.get_document("_id").and_then(|id| SessionId::parse(id.to_doc_buf().doc()).ok());
            owners.include_some(id.as_ref())
        });
        Ok(found)
    }
    /// The same of those that this node knows of.
    fn own_sessions(&self, spec: &Document) -> Vec<Document> {
        let owners = Owners::listed(spec, &self.op.client);
        let known = self.node.hooks.read().as_ref().map_or(Vec::new(), |hooks| hooks.sessions());
        let known = known.into_iter().filter(|(id, _)| owners.include(&id.uid));
        known.map(|(id, last)| doc! { "_id": id.to_document(), "lastUse": Value::DateTime(last) }).collect()
    }

    async fn plan_cache_stats(&self, spec: &Document) -> Result<Vec<Document>> {
        if spec.get_bool("allHosts") == Some(true) && self.op.received.shard.is_none() {
            bail!(
                4503200,
                "$planCacheStats stage with {{allHosts: true}} is only allowed on a sharded cluster"
            );
        }
        let slot = self.node.namespaces.slot(&self.ns);
        let found = slot
            .read(&self.op, |s| {
                let signature = |c| crate::plan_cache::signature(&crate::exec::index_infos(c));
                Ok((s.view.is_some(), s.collection.as_ref().map(|c| (c.uuid(), signature(c)))))
            })
            .await?;
        match found {
            (_, Some((uuid, signature))) => {
                let cache = self.node.plan_caches.of(uuid);
                Ok(cache.map_or(Vec::new(), |c| c.shown(signature, &self.node.options.host)))
            }
            (true, None) => Ok(Vec::new()),
            (false, None) => bail!(50933, "collection '{}' does not exist", self.ns),
        }
    }

    /// What `$collStats` says of every collection here.
    async fn all_collection_stats(&self, spec: &Document) -> Result<Vec<Document>> {
        let (node, op, empty) = (&self.node, self.aside(), Document::new());
        let wanted = spec.get_document("stats").unwrap_or(&empty);
        let mut out = Vec::new();
        for slot in node.namespaces.visible() {
            if slot.read_unchecked().collection.is_some() {
                out.push(coll_stats(node, &op, &slot.ns, wanted).await?);
            }
        }
        Ok(out)
    }

    async fn index_stats(&self) -> Result<Vec<Document>> {
        let slot = self.node.namespaces.slot(&self.ns);
        let specs: Vec<Document> = slot
            .read(&self.op, |s| {
                Ok(s.collection.as_ref().map_or(Vec::new(), |c| {
                    c.indexes().iter().map(|i| i.spec().document().clone()).collect()
                }))
            })
            .await?;
        Ok(specs
            .into_iter()
            .map(|spec| {
                let name = spec.get_str("name").unwrap_or_default();
                let (ops, since) = self.node.index_use.of(&self.ns, name, self.node.now_ms());
                doc! {
                    "name": name, "key": spec.get("key").cloned().unwrap_or(Value::Null),
                    "host": self.node.options.host.as_str(),
                    "accesses": { "ops": ops, "since": Value::DateTime(since) },
                    "spec": spec.clone(),
                }
            })
            .collect())
    }

    fn list_catalog(&self) -> Vec<Document> {
        let mut out = Vec::new();
        let whole = self.ns.ends_with(".$cmd.aggregate");
        for slot in self.node.namespaces.visible() {
            if !whole && slot.ns != self.ns {
                continue;
            }
            let state = slot.read_unchecked();
            let (db, name) = storage::split_namespace(&slot.ns);
            if let Some(view) = &state.view {
                out.push(doc! {
                    "db": db, "name": name, "ns": slot.ns.as_str(), "type": "view",
                    "viewOn": view.on.as_str(), "pipeline": Value::Array(view.pipeline.clone()),
                });
            }
            if let Some(c) = &state.collection {
                let indexes: Vec<Value> = c
                    .indexes()
                    .iter()
                    .map(|i| {
                        Value::Document(doc! {
                            "spec": i.spec().document().clone(), "ready": true, "multikey": i.is_multikey(),
                        })
                    })
                    .collect();
                let mut options = c.meta().options.clone();
                options.push("uuid", Value::uuid(c.uuid()));
                out.push(doc! {
                    "db": db, "name": name, "ns": slot.ns.as_str(), "type": "collection",
                    "md": { "ns": slot.ns.as_str(), "options": options, "indexes": indexes },
                });
            }
        }
        out
    }
}

/// `$collStats` of one collection.
async fn coll_stats(node: &Node, op: &Operation, ns: &str, spec: &Document) -> Result<Document> {
    let mut out = doc! {
        "ns": ns, "host": node.options.host.as_str(),
        "localTime": Value::DateTime(node.now_ms()),
    };
    // Of an option that is given twice a null does not count.
    let given = |option: &str| spec.iter().find(|(name, v)| *name == option && !v.is_null()).map(|(_, v)| v);
    if let Some(latency) = given("latencyStats") {
        let histograms = latency.as_document().and_then(|d| d.get_bool("histograms")).unwrap_or(false);
        let stats = match &*node.hooks.read() {
            Some(hooks) => hooks.latency_stats(ns, histograms),
            None => Document::new(),
        };
        out.push("latencyStats", stats);
    }
    let scale = match given("storageStats") {
        Some(Value::Document(d)) => match d.get_present("scale") {
            Some(v) => storage_scale(v)?,
            None => 1,
        },
        _ => 1,
    };
    let slot = node.namespaces.slot(ns);
    let orphans = orphan_count(node, ns);
    let found = slot
        .read(op, |s| {
            let c = s.collection.as_ref();
            let found = c.map(|c| (collection_statistics(node, c, scale, orphans), Some(c.len() as i64)));
            Ok(found.or_else(|| oplog_statistics(node, ns, scale).map(|stats| (stats, None))))
        })
        .await?;
    // How long operations took is known of any name; all else is known of collections.
    if let Some(option) = ["storageStats", "count", "queryExecStats"].into_iter().find(|o| given(o).is_some())
        && found.is_none()
    {
        bail!(
            NAMESPACE_NOT_FOUND,
            "Unable to retrieve {option} in $collStats stage :: caused by :: Collection [{ns}] not found."
        );
    }
    let (stats, count) = found.unwrap_or_default();
    if given("storageStats").is_some() {
        out.push("storageStats", stats);
    }
    if given("count").is_some() {
        out.push("count", document::number::int_or_long(count.unwrap_or_default()));
    }
    if given("queryExecStats").is_some() {
        out.push("queryExecStats", doc! { "collectionScans": node.index_use.scans_of(ns) });
    }
    Ok(out)
}

impl PipelineHost for LocalHost {
    fn breathe<'a>(&'a self) -> BoxFuture<'a, Result<()>> {
        Box::pin(crate::lane::give_way(&self.op))
    }
    fn source<'a>(&'a self, stage: &'a HostStage, _run: &'a Run) -> BoxFuture<'a, Result<Box<dyn Source>>> {
        Box::pin(async move {
            let documents = self.open_source(stage).await?;
            let documents: Vec<DocBuf> = documents.iter().map(|d| d.to_doc_buf()).collect();
            Ok(Box::new(Documents(Some(documents))) as Box<dyn Source>)
        })
    }

    fn run<'a>(
        &'a self,
        namespace: &'a Namespace,
        pipeline: Vec<Value>,
        let_values: Vec<(String, Value)>,
        run: &'a Run,
    ) -> BoxFuture<'a, Result<Box<dyn Source>>> {
        Box::pin(async move {
            self.op.check_interrupt()?;
            let ns = match namespace.collection.is_empty() {
                true => format!("{}.$cmd.aggregate", namespace.db),
                false => namespace.to_string(),
            };
            let asked = Asked {
                ns,
                pipeline,
                variables: Document(let_values),
                allow_disk_use: run.allow_disk_use,
                collation: Some(run.collation.clone()),
                now_ms: Some(run.vars.now_ms),
                within: true,
                ..Asked::default()
            };
            let op = Arc::new(self.towards(&asked.ns));
            let rows = open(&self.node, &op, asked).await?;
            Ok(Box::new(self.others.keep(rows, op)) as Box<dyn Source>)
        })
    }
    fn more<'a>(&'a self, number: u64) -> BoxFuture<'a, Result<Option<Vec<DocBuf>>>> {
        Box::pin(self.others.more(self, number))
    }
    fn end(&self, number: u64) {
        self.others.end(number);
    }

    fn write<'a>(
        &'a self,
        stage: &'a HostStage,
        batch: Vec<DocBuf>,
        end: bool,
        run: &'a Run,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Some(target) = &stage.namespace else {
                bail!(INTERNAL_ERROR, "{} without a target", stage.name)
            };
            match stage.name {
                "$out" => {
                    let asked = stage.spec.as_document().and_then(|d| d.get_document("timeseries"));
                    self.out(&target.to_string(), asked, batch, end).await
                }
                _ => self.merge(&target.to_string(), &stage.spec, batch, run).await,
            }
        })
    }
}
