//! Migrations that a crash interrupted.
//!
//! A donor's coordinator without a decision: the namespace is blocked before the node serves anything, and stays so
//! until the config server has said who owns the range. A recipient's record: the reception is gone with the process;
//! what it wrote is covered by its task, which the donor settles.

use super::donor::{Driver, RECOVERY_SECTION};
use super::request::Coordinator;
use super::{COORDINATORS, RECIPIENTS};
use crate::shard::ShardRole;
use crate::shard::critical_section::Phase;
use crate::shard::statistics::add;
use document::{Document, Result};
use protocol::migration::donor::Donor;
use std::sync::Arc;

/// Blocks what is undecided, then lets each migration go on by itself.
///
/// # Errors
/// A damaged coordinator document: nobody could say what it protects.
pub async fn recover(role: &Arc<ShardRole>) -> Result<()> {
    let all = Document::new();
    for record in role.local.find(RECIPIENTS, &all)? {
        let id = record.get("_id").cloned().unwrap_or(document::Value::Null);
        role.local.delete(RECIPIENTS, &document::doc! { "_id": id }).await?;
    }
    for document in role.local.find(COORDINATORS, &all)? {
        let coordinator = Coordinator::from_document(&document)?;
        add(&role.statistics.unfinished_from_before, 1);
        if coordinator.decision.is_none() {
            // Two undecided migrations of one collection share the section of the first.
            let _ = role.block(&coordinator.ns, Phase::Commit, RECOVERY_SECTION);
        }
        role.migrations.recovery_begins(&coordinator.ns);
        let task = role.clone();
        role.spawn(async move {
            let machine = Donor::recover(coordinator.decision);
            let ns = coordinator.ns.clone();
            Driver::new(task.clone(), coordinator, None).drive(machine).await;
            task.migrations.recovery_ended(&ns);
        });
    }
    Ok(())
}
