//! Loading the checkpoint, and filling indexes.

use std::collections::BTreeMap;
use std::path::Path;

use super::progress::{Progress, Stage, Ticker};
use super::{Applier, ReplayObserver};
use crate::StorageError;
use crate::checkpoint::{Checkpoints, Manifest, ManifestCollection, read_image};
use crate::collection::Collection;
use crate::files::Files;
use crate::index::{IndexSpec, PredicateFactory};
use crate::parallel::in_order;

/// Loads the collections of the checkpoint, with their indexes on `_id`; returns the number of documents.
pub(super) fn load(
    files: &dyn Files,
    dir: &Path,
    manifest: &Manifest,
    predicates: &PredicateFactory<'_>,
    applier: &mut Applier<'_>,
    checkpoints: &mut Checkpoints,
    observer: &mut dyn ReplayObserver,
) -> Result<u64, StorageError> {
    let mut loaded = manifest
        .collections
        .iter()
        .map(|stored| empty(dir, stored, predicates))
        .collect::<Result<Vec<_>, _>>()?;
    read_images(files, dir, manifest, &mut loaded, observer)?;
    let total = Some(loaded.len() as u64);
    let (mut documents, mut ticker) = (0, Ticker::new());
    for (done, (stored, mut collection)) in (1..).zip(manifest.collections.iter().zip(loaded)) {
        let ns = &stored.meta.ns;
        let corrupt = |reason: String| StorageError::corrupt(dir, format!("collection {ns}: {reason}"));
        collection.set_next_record(stored.next_record);
        if collection.len() as u64 != stored.records {
            let reason = format!("{} records where {} were written", collection.len(), stored.records);
            return Err(corrupt(reason));
        }
        collection.fill_maintained().map_err(|e| corrupt(e.message))?;
        documents += stored.records;
        checkpoints.loaded(stored.meta.uuid, collection.changes().clone(), stored.images.clone());
        applier.collections.insert(ns.clone(), collection);
        if ticker.is_due() {
            observer.progress(Progress { stage: Stage::Indexes, done, total });
        }
    }
    Ok(documents)
}

fn empty(
    dir: &Path,
    stored: &ManifestCollection,
    predicates: &PredicateFactory<'_>,
) -> Result<Collection, StorageError> {
    let corrupt =
        |reason: String| StorageError::corrupt(dir, format!("collection {}: {reason}", stored.meta.ns));
    let parse = |spec| IndexSpec::parse(spec, predicates).map_err(|e| corrupt(e.message));
    let mut collection = Collection::new(stored.meta.clone());
    collection.expect_indexes(stored.indexes.iter().map(parse).collect::<Result<Vec<_>, _>>()?);
    Ok(collection)
}

/// Reads the images of all collections; `loaded` stand in the manifest's order.
fn read_images(
    files: &dyn Files,
    dir: &Path,
    manifest: &Manifest,
    loaded: &mut [Collection],
    observer: &mut dyn ReplayObserver,
) -> Result<(), StorageError> {
    let stored = manifest.collections.iter().enumerate();
    let images: Vec<_> =
        stored.flat_map(|(at, c)| c.images.iter().map(move |image| (at, c.meta.uuid, image))).collect();
    let total = Some(images.iter().map(|(_, _, image)| image.bytes).sum());
    let (mut done, mut ticker) = (0, Ticker::new());
    observer.progress(Progress { stage: Stage::Images, done, total });
    in_order(
        &images,
        |(_, uuid, image)| read_image(files, dir, image, *uuid),
        |(at, _, image), read| {
            read.records().for_each(|(record, doc)| loaded[*at].load_record(record, doc));
            done += image.bytes;
            if ticker.is_due() {
                observer.progress(Progress { stage: Stage::Images, done, total });
            }
            Ok(())
        },
    )?;
    observer.progress(Progress { stage: Stage::Images, done, total });
    Ok(())
}

/// Fills what the replay left out.
pub(super) fn fill_deferred(
    collections: &mut BTreeMap<String, Collection>,
    dir: &Path,
    observer: &mut dyn ReplayObserver,
) -> Result<(), StorageError> {
    let total = Some(collections.len() as u64);
    let mut ticker = Ticker::new();
    for (done, (ns, collection)) in (1..).zip(collections.iter_mut()) {
        collection
            .catch_up_indexes()
            .map_err(|e| StorageError::corrupt(dir, format!("collection {ns}: {}", e.message)))?;
        if ticker.is_due() {
            observer.progress(Progress { stage: Stage::Indexes, done, total });
        }
    }
    Ok(())
}
