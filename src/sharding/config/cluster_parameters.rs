//! Cluster parameters on the shards: they have what the config server has.
//!
//! ```text
//! set        own document -> every shard
//! addShard   the shard's own are deleted -> it gets the config server's
//! step-up    every shard gets all of them again: a primary may have died between two shards
//! ```
//! Each goes with the time at which the config server has set it, and a shard passes over what is no newer than what it has.

use super::ConfigServer;
use crate::remote::{Target, majority};
use document::{Document, Result, doc};
use futures::future::join_all;
use node::cardinality;
use node::cluster_parameters::COLLECTION;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::MutexGuard;

/// How long until shards that could not be reached are told again.
const PAUSE: Duration = Duration::from_millis(500);

/// `parameter` as the config server keeps it, as a command for a shard.
fn command(parameter: &Document) -> Document {
    let mut fields = parameter.clone();
    fields.remove("_id");
    let time = fields.remove("clusterParameterTime");
    let name = parameter.get_str("_id").unwrap_or_default();
    let set = Document(vec![(name.to_string(), fields.into())]);
    doc! { "_shardsvrSetClusterParameter": set, "clusterParameterTime": time, "writeConcern": majority() }
}

impl ConfigServer {
    /// Keeps `parameter`, a document of `config.clusterParameters`, and has every shard set it. What is kept stays so when a
    /// shard cannot be reached: the same again reaches the others, and the next primary tells them, too.
    ///
    /// # Errors
    /// Those of the log and of the first shard that does not set it.
    pub async fn set_cluster_parameter(&self, parameter: &Document) -> Result<()> {
        let _held = self.shards_parameters.lock().await;
        self.set_held(parameter.clone()).await
    }

    /// Under the lock, by which each has a later time than the one before.
    async fn set_held(&self, mut parameter: Document) -> Result<()> {
        parameter.insert("clusterParameterTime", self.tick());
        self.local.put(COLLECTION, &parameter).await?;
        let sent = self.send_to_shards(&parameter).await;
        if sent.is_err() {
            self.parameters_missed.notify_one();
        }
        sent
    }

    /// One that cannot be reached keeps no other from being told.
    async fn send_to_shards(&self, parameter: &Document) -> Result<()> {
        let shards = self.catalog().shards();
        let sent = shards.iter().map(|shard| self.ask_while_heard(&shard.host, command(parameter)));
        join_all(sent).await.into_iter().collect::<Result<Vec<Document>>>().map(drop)
    }

    /// Gives a shard that is being added the cluster's parameters in place of its own. Until the guard is dropped nothing changes
    /// of those.
    pub(super) async fn give_parameters(&self, connection: &str) -> Result<MutexGuard<'_, ()>> {
        let held = self.shards_parameters.lock().await;
        let target = Target::Host(connection);
        let all = doc! { "q": {}, "limit": 0 };
        let delete = doc! { "delete": "clusterParameters", "deletes": [all], "writeConcern": majority() };
        self.remote.run(target, "config", delete.to_doc_buf()).await?;
        for parameter in self.local.find(COLLECTION, &doc! {})? {
            self.remote.admin(target, command(&parameter)).await?;
        }
        Ok(held)
    }

    /// Keeps whether there are several shards, and tells the shards. One that cannot be reached does not hold the caller up: it is
    /// told later.
    ///
    /// # Errors
    /// Those of the log.
    pub(super) async fn tell_cardinality(&self) -> Result<()> {
        let _held = self.shards_parameters.lock().await;
        let several = self.catalog().shards().len() > 1;
        if self.node.cardinality.several_shards() == several {
            return Ok(());
        }
        let parameter = doc! { "_id": cardinality::PARAMETER, (cardinality::FIELD): several };
        match self.set_held(parameter).await {
            // It is kept here, and they are told later.
            Err(_) if self.node.cardinality.several_shards() == several => Ok(()),
            done => done,
        }
    }

    /// Tells the shards what a primary before this one may not have come to tell them, and later what they have missed.
    pub async fn keep_shards_told(self: Arc<Self>) {
        loop {
            while self.tell_all().await.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
            self.parameters_missed.notified().await;
        }
    }
    async fn tell_all(&self) -> Result<()> {
        self.tell_cardinality().await?;
        let _held = self.shards_parameters.lock().await;
        let mut told = Ok(());
        for parameter in self.local.find(COLLECTION, &doc! {})? {
            told = told.and(self.send_to_shards(&parameter).await);
        }
        told
    }
}
