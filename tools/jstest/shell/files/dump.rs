//! Files that hold BSON documents one after another, as `mongodump` writes them.

use super::refused;
use crate::natives::{define, number};
use crate::{bson, errors};
use document::validate::Limits;
use rquickjs::{Array, Ctx, Object, Result, Value};
use std::sync::Arc;

pub(super) fn register<'js>(ctx: &Ctx<'js>) -> Result<()> {
    define(ctx, "_readDumpFile", |ctx: Ctx<'js>, path: String| -> Result<Array<'js>> {
        let documents = Array::new(ctx.clone())?;
        for (place, document) in read(&ctx, &path)?.into_iter().enumerate() {
            documents.set(place, bson::from_bson(&ctx, document)?)?;
        }
        Ok(documents)
    })?;
    define(ctx, "_numObjsInDumpFile", |ctx: Ctx<'js>, path: String| {
        read(&ctx, &path).map(|all| all.len() as f64)
    })?;
    define(
        ctx,
        "_getObjInDumpFile",
        |ctx: Ctx<'js>, path: String, place: Value<'js>| -> Result<Object<'js>> {
            let (all, place) = (read(&ctx, &path)?, number(&place)? as usize);
            match all.get(place) {
                Some(document) => bson::from_bson(&ctx, document.clone()),
                None => {
                    Err(errors::throw(&ctx, &format!("{path} has {} documents, none at {place}", all.len())))
                }
            }
        },
    )
}

/// All documents of a file.
pub fn read(ctx: &Ctx<'_>, path: &str) -> Result<Vec<Arc<[u8]>>> {
    let bytes = std::fs::read(path).map_err(|error| refused(ctx, "couldn't open file", path, &error))?;
    let mut rest = bytes.as_slice();
    let mut documents = Vec::new();
    while !rest.is_empty() {
        let length = rest.first_chunk().map_or(0, |head| i32::from_le_bytes(*head)) as usize;
        let document = rest
            .get(..length)
            .filter(|document| document::validate::validate(document, Limits::INTERNAL).is_ok());
        let Some(document) = document else {
            let place = bytes.len() - rest.len();
            return Err(errors::throw(ctx, &format!("{path} holds no valid document at byte {place}")));
        };
        documents.push(document.into());
        rest = &rest[length..];
    }
    Ok(documents)
}
