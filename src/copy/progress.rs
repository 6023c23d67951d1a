//! What a person sees while it copies: a bar on a terminal, lines elsewhere.

use crate::catalog::Described;
use crate::{Copy, Result};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use mongodb::bson::doc;

/// Counts bytes of documents.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// For a copy of these collections, whose size the source estimates.
    pub(crate) async fn of(copy: &Copy, collections: &[Described]) -> Result<Progress> {
        let mut bytes = 0;
        for collection in collections.iter().filter(|c| !c.is_view()) {
            let stats =
                copy.from.database(&collection.db).run_command(doc! { "collStats": &collection.name }).await;
            // A size is for show: what cannot be had counts as nothing.
            let size = stats.ok().and_then(|s| s.get("size").and_then(number));
            bytes += size.unwrap_or(0);
        }
        let bar = ProgressBar::new(bytes);
        let style = "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} to go";
        bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
        Ok(Progress { bar })
    }

    pub(crate) fn none() -> Progress {
        Progress { bar: ProgressBar::hidden() }
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.bar.inc(bytes as u64);
    }

    /// A line above the bar.
    pub(crate) fn say(&self, line: &str) {
        self.bar.suspend(|| println!("{line}"));
    }

    pub(crate) fn finish(&self, collections: usize) {
        self.bar.finish_and_clear();
        println!("copied {collections} collections, {}", HumanBytes(self.bar.position()));
    }
}

fn number(value: &mongodb::bson::Bson) -> Option<u64> {
    let whole = value.as_i64().or(value.as_i32().map(i64::from)).or(value.as_f64().map(|x| x as i64));
    whole.and_then(|n| u64::try_from(n).ok())
}
