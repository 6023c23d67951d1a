//! Running plans: pulled in slices of some hundreds of records or about a millisecond, so that others get the CPU.
//!
//! ```text
//! Plan ─> Walk        where in the collection the query stands; owns no reference into it
//!           └─> Query    ownership, skip, limit, projection ─> Batch (BSON array bytes)
//! ```
//!
//! A walk keeps its position as a record id or an index key, never as a cursor: it is given the collection anew for
//! each slice. So the first slice runs on the live collection under its latch, and most queries end there without a
//! snapshot; one that does not takes the snapshot under the same latch and goes on from its position.

pub mod batch;
pub mod choice;
mod covered;
mod keys;
mod merge;
mod nearest;
pub mod profiled;
pub mod query;
pub mod shown;
pub mod sorter;
pub mod walk;

pub use self::query::{Opened, Query, Shape, Wanted};
pub use batch::{Batch, Output};
pub use walk::{Budget, Found, Progress, Taken, Walk};

use ::query::planner::{IndexInfo, WildcardInfo};
use storage::CollectionView;

/// What the planner is told of a collection's indexes.
pub fn index_infos(view: &impl CollectionView) -> Vec<IndexInfo> {
    (0..view.index_count())
        .filter_map(|slot| view.index_info(slot))
        .map(|i| IndexInfo {
            name: i.spec.name().to_string(),
            key: i.spec.key().clone(),
            unique: i.spec.unique(),
            sparse: i.spec.sparse(),
            multikey: i.multikey(),
            arrays: i.met.arrays.clone(),
            kinds: i.met.kinds,
            hidden: i.spec.hidden(),
            partial_filter: i.spec.partial_filter().map(|d| d.to_doc_buf()),
            collation: i.spec.collation().clone(),
            layout: i.spec.layout().copied(),
            wildcard: i.spec.wildcard().map(|w| WildcardInfo { at: w.at, scope: w.scope.clone() }),
            expansion: None,
            clustered: i.spec.is_clustered().then(|| i.spec.shown_name().to_string()),
        })
        .collect()
}
