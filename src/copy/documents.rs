//! Copying the documents: every collection in parts by ranges of `_id`, several parts at a time, each inserted as it was read.
//!
//! A part is safe to copy twice: what is there already is refused by the unique index on `_id` and left alone, since it is as new
//! as the other or will be made so by the change stream. Measurements of time series have no such index, so theirs begin with an
//! empty collection.

use crate::catalog::{self, Described, Sharding};
use crate::progress::Progress;
use crate::record::{Parts, Record};
use crate::{Copy, Result, codes};
use futures::stream::{self, TryStreamExt};
use mongodb::Collection;
use mongodb::bson::{Bson, Document, RawDocumentBuf, Timestamp, doc};
use mongodb::error::ErrorKind;
use mongodb::options::Hint;
use std::sync::Arc;
use std::time::Duration;

/// A part has about so many documents, as far as a sample of the collection can tell.
const PART_DOCUMENTS: u64 = 50_000;
/// So many documents of a sample stand for one cut.
const SAMPLE_OF_A_CUT: u64 = 10;
const PARTS_MAX: u64 = 500;
/// What one insert carries.
const BATCH_DOCUMENTS: usize = 1_000;
const BATCH_BYTES: usize = 8 * 1024 * 1024;
const ATTEMPTS: u32 = 10;

/// One part of one collection.
struct Piece<'a> {
    collection: &'a Described,
    parts: Arc<Parts>,
    n: i64,
    min: Option<Bson>,
    max: Option<Bson>,
    record: &'a Record,
}

impl Copy {
    /// Makes the collections and copies all documents that are not in yet.
    pub(crate) async fn documents(&self, record: &Record) -> Result<()> {
        let sharding = Sharding::of(self).await?;
        if let Some(sharding) = &sharding {
            sharding.make_zones(self).await?;
        }
        let mut collections = Vec::new();
        for db in catalog::databases(self).await? {
            collections.extend(catalog::collections(&self.from, &db).await?);
        }
        let mut pieces = Vec::new();
        for collection in &collections {
            self.make(collection, sharding.as_ref()).await?;
            if !collection.is_view() {
                pieces.extend(self.pieces(record, collection).await?);
            }
        }
        let progress = Progress::of(self, &collections).await?;
        stream::iter(pieces.into_iter().map(Ok))
            .try_for_each_concurrent(usize::from(self.options.parallel), |piece| self.piece(piece, &progress))
            .await?;
        progress.finish(collections.len());
        Ok(())
    }

    /// Makes one collection at the target; sharded while it is empty.
    pub(crate) async fn make(&self, collection: &Described, sharding: Option<&Sharding>) -> Result<()> {
        catalog::make(self, collection).await?;
        match sharding {
            Some(sharding) if !collection.is_view() => sharding.shard(self, &collection.ns()).await,
            _ => Ok(()),
        }
    }

    async fn pieces<'a>(&self, record: &'a Record, collection: &'a Described) -> Result<Vec<Piece<'a>>> {
        let parts = Arc::new(record.parts(self, &collection.ns(), self.cuts(collection)).await?);
        let piece = |(n, min, max)| Piece { collection, parts: parts.clone(), n, min, max, record };
        Ok(parts.missing().into_iter().map(piece).collect())
    }

    /// Values of `_id` that cut the collection into parts of about one size, from a sorted sample.
    async fn cuts(&self, collection: &Described) -> Result<Vec<Bson>> {
        let source = self.from.database(&collection.db).collection::<Document>(&collection.name);
        if !collection.has_id_index() {
            return Ok(Vec::new());
        }
        let parts = (source.estimated_document_count().await? / PART_DOCUMENTS).min(PARTS_MAX);
        if parts < 2 {
            return Ok(Vec::new());
        }
        let sample = i64::try_from(parts * SAMPLE_OF_A_CUT).unwrap_or(i64::MAX);
        let stages = [
            doc! { "$sample": { "size": sample } },
            doc! { "$project": { "_id": 1 } },
            doc! { "$sort": { "_id": 1 } },
        ];
        let sampled: Vec<Document> =
            source.aggregate(stages).allow_disk_use(true).await?.try_collect().await?;
        let ids = sampled.into_iter().filter_map(|mut d| d.remove("_id"));
        let mut cuts: Vec<Bson> =
            ids.skip(SAMPLE_OF_A_CUT as usize).step_by(SAMPLE_OF_A_CUT as usize).collect();
        cuts.dedup();
        Ok(cuts)
    }

    async fn piece(&self, piece: Piece<'_>, progress: &Progress) -> Result<()> {
        for attempt in 1.. {
            match self.attempt(&piece, progress).await {
                Err(error) if error.is_transient() && attempt < ATTEMPTS => {
                    progress.say(&format!("{}: {error}; once more", piece.collection.ns()));
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                done => {
                    done?;
                    break;
                }
            }
        }
        piece.parts.note(self, piece.n).await
    }

    async fn attempt(&self, piece: &Piece<'_>, progress: &Progress) -> Result<()> {
        let collection = piece.collection;
        if collection.is_time_series() {
            self.to.database(&collection.db).collection::<Document>(&collection.name).drop().await?;
            self.make(collection, Sharding::of(self).await?.as_ref()).await?;
        }
        let bounds = (piece.min.clone(), piece.max.clone());
        self.transfer(collection, bounds, piece.record, piece.record.start_at, progress).await
    }

    /// Copies what `_id` bounds, or all of it, in a state of `at` or later.
    pub(crate) async fn transfer(
        &self,
        collection: &Described,
        (min, max): (Option<Bson>, Option<Bson>),
        record: &Record,
        at: Timestamp,
        progress: &Progress,
    ) -> Result<()> {
        let mut session = self.session(at).await?;
        let source = self.from.database(&collection.db).collection::<RawDocumentBuf>(&collection.name);
        let target = self.to.database(&collection.db).collection::<RawDocumentBuf>(&collection.name);
        let mut find = source.find(doc! {});
        // Bounds of the index, not a filter, which would see one type of values only.
        if min.is_some() || max.is_some() {
            find = find.hint(Hint::Keys(doc! { "_id": 1 }));
        }
        if let Some(min) = min {
            find = find.min(doc! { "_id": min });
        }
        if let Some(max) = max {
            find = find.max(doc! { "_id": max });
        }
        let mut cursor = find.session(&mut session).await?;
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(document) = cursor.next(&mut session).await.transpose()? {
            bytes += document.as_bytes().len();
            batch.push(document);
            if batch.len() == BATCH_DOCUMENTS || bytes >= BATCH_BYTES {
                record.check(self).await?;
                insert(&target, std::mem::take(&mut batch)).await?;
                progress.add(std::mem::take(&mut bytes));
            }
        }
        record.check(self).await?;
        insert(&target, batch).await?;
        progress.add(bytes);
        Ok(())
    }
}

async fn insert(target: &Collection<RawDocumentBuf>, batch: Vec<RawDocumentBuf>) -> Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let done = target.insert_many(batch).ordered(false).bypass_document_validation(true).await;
    match done {
        Err(error) if is_there_already(&error) => Ok(()),
        done => Ok(done.map(drop)?),
    }
}

/// Whether nothing but keys that exist kept documents out.
fn is_there_already(error: &mongodb::error::Error) -> bool {
    match &*error.kind {
        ErrorKind::InsertMany(e) => {
            e.write_concern_error.is_none()
                && e.write_errors
                    .as_ref()
                    .is_some_and(|all| all.iter().all(|w| w.code == codes::DUPLICATE_KEY))
        }
        _ => false,
    }
}
