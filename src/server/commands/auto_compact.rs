//! `autoCompact`: whether storage is compacted in the background.
//!
//! Nothing is: collections are in memory, and the log is cut by checkpoints. What the command keeps is what decides its
//! next answer: the setting that is on may be given again, and another one only after it was switched off.

use super::crud::node;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Result, ValueRef, bail};
use node::auth::Action as A;
use node::shape::Kind::{Bool, Number};
use node::shape::{Shape, field, required, to_long};

pub const ROWS: &[Command] = &[Command::sync("autoCompact", Roles::MONGOD, auto_compact)
    .needs(Needs::Cluster(&[A::Compact]))
    .admin_only()
    .takes_no_write_concern()
    .shape(&SHAPE)
    .help("Switches compaction in the background on or off; there is nothing on disk to compact, so only the setting is kept.")];

const SHAPE: Shape = Shape {
    name: "autoCompact",
    generic: true,
    fields: &[required("autoCompact", Bool), field("freeSpaceTargetMB", Number), field("runOnce", Bool)],
};

/// How much space must be recoverable where the request does not say, in megabytes.
const FREE_SPACE_TARGET_MB: i64 = 20;

/// The setting that is on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AutoCompact {
    free_space_target_mb: i64,
}

/// `freeSpaceTargetMB` of this command and of `compact`, in mebibytes; the error is BadValue below 1.
pub(super) fn free_space_target(request: &Request<'_>) -> Result<i64> {
    let given = request.get("freeSpaceTargetMB").and_then(to_long).unwrap_or(FREE_SPACE_TARGET_MB);
    if given < 1 {
        bail!(BAD_VALUE, "BSON field 'freeSpaceTargetMB' value must be >= 1, actual value '{given}'");
    }
    Ok(given)
}

/// `{autoCompact: bool, freeSpaceTargetMB, runOnce}`.
fn auto_compact(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    let on = request.target().truthy();
    let free_space_target_mb = free_space_target(request)?;
    node(context)?;
    let mut current = context.service.auto_compact.lock();
    if !on {
        *current = None;
        return Ok(());
    }
    if free_space_target_mb > i64::MAX >> 20 {
        bail!(BAD_VALUE, "freeSpaceTargetMB is too large: {free_space_target_mb}");
    }
    let asked = AutoCompact { free_space_target_mb };
    if current.is_some_and(|on| on != asked) {
        bail!(
            ALREADY_INITIALIZED,
            "background compaction is already enabled with other options; switch it off first"
        );
    }
    // A single pass over nothing is over at once.
    if request.get("runOnce") != Some(ValueRef::Boolean(true)) {
        *current = Some(asked);
    }
    Ok(())
}
