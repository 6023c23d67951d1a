//! `$unwind`: one document for each element of an array.

use crate::expression::FieldPath;
use crate::pipeline::{Context, Flow, Needs, Parsed, Plan, Run, Stage, parse::one};
use document::{Doc, DocBuf, DocWriter, Document, Result, Value, ValueRef, bail};

#[derive(Clone, Debug)]
struct Unwind {
    path: FieldPath,
    index: Option<FieldPath>,
    preserve: bool,
}

impl Plan for Unwind {
    fn start(&self, _: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(self.clone()))
    }
    fn needs(&self) -> Needs {
        Needs::Passing(vec![self.path.to_string()])
    }
}

impl Stage for Unwind {
    fn push(&mut self, batch: Vec<DocBuf>, out: &mut Vec<DocBuf>) -> Result<Flow> {
        for d in batch {
            self.unwind(d, out);
        }
        Ok(Flow::Continue)
    }
}

impl Unwind {
    fn unwind(&self, d: DocBuf, out: &mut Vec<DocBuf>) {
        match (through_documents(d.doc(), &self.path), &self.index) {
            (Some(ValueRef::Array(items)), index) if !items.is_empty() => match (self.path.parts(), index) {
                ([name], None) => out.extend(items.iter().map(|item| splice(d.doc(), name, &item))),
                _ => self.unwind_tree(d.doc(), items, out),
            },
            (None | Some(ValueRef::Null | ValueRef::Undefined | ValueRef::Array(_)), _) if !self.preserve => {
            }
            (Some(ValueRef::Array(_)), index) => {
                // An empty array is dropped from the document that is preserved.
                let mut tree = d.to_document();
                remove(&mut tree, self.path.parts());
                if let Some(index) = index {
                    set(&mut tree, index.parts(), Value::Null);
                }
                out.push(tree.to_doc_buf());
            }
            (_, None) => out.push(d),
            (_, Some(index)) => {
                let mut tree = d.to_document();
                set(&mut tree, index.parts(), Value::Null);
                out.push(tree.to_doc_buf());
            }
        }
    }
    fn unwind_tree(&self, d: Doc<'_>, items: Doc<'_>, out: &mut Vec<DocBuf>) {
        let mut tree = d.to_document();
        for (i, item) in items.iter().enumerate() {
            set(&mut tree, self.path.parts(), item.value().to_value());
            match &self.index {
                None => out.push(tree.to_doc_buf()),
                Some(index) => {
                    let mut indexed = tree.clone();
                    set(&mut indexed, index.parts(), Value::Int64(i as i64));
                    out.push(indexed.to_doc_buf());
                }
            }
        }
    }
}

/// The value at a path that goes through documents only.
fn through_documents<'a>(d: Doc<'a>, path: &FieldPath) -> Option<ValueRef<'a>> {
    let (last, head) = path.parts().split_last()?;
    let mut d = d;
    for name in head {
        d = d.get_document(name)?;
    }
    d.get(last)
}

/// The document with one top-level field replaced by an array's element.
fn splice(d: Doc<'_>, name: &str, item: &document::Element<'_>) -> DocBuf {
    DocWriter::build(|w| {
        for e in d.iter() {
            if e.name_bytes() == name.as_bytes() {
                w.element_as(name, item);
            } else {
                w.element(&e);
            }
        }
    })
}

/// Sets a path, making documents on the way.
pub fn set(d: &mut Document, path: &[Box<str>], v: Value) {
    match path {
        [] => {}
        [name] => d.insert(&**name, v),
        [name, rest @ ..] => {
            if !matches!(d.get(name), Some(Value::Document(_))) {
                d.insert(&**name, Document::new());
            }
            if let Some(Value::Document(inner)) = d.get_mut(name) {
                set(inner, rest, v);
            }
        }
    }
}

fn remove(d: &mut Document, path: &[Box<str>]) {
    match path {
        [] => {}
        [name] => {
            d.remove(name);
        }
        [name, rest @ ..] => {
            if let Some(Value::Document(inner)) = d.get_mut(name) {
                remove(inner, rest);
            }
        }
    }
}

pub fn parse(name: &'static str, v: &Value, _: &Context) -> Result<Vec<Parsed>> {
    let (mut path, mut index, mut preserve) = (None, None, false);
    match v {
        Value::String(s) => path = Some(s.as_str()),
        Value::Document(d) => {
            for (option, v) in d.iter() {
                match (option, v) {
                    ("path", Value::String(s)) => path = Some(s.as_str()),
                    ("path", v) => {
                        bail!(28808, "expected a string as the path for $unwind stage, got {}", v.type_name())
                    }
                    ("preserveNullAndEmptyArrays", Value::Boolean(b)) => preserve = *b,
                    ("preserveNullAndEmptyArrays", v) => bail!(
                        28809,
                        "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got {}",
                        v.type_name()
                    ),
                    ("includeArrayIndex", Value::String(s)) if !s.is_empty() => index = Some(s.as_str()),
                    ("includeArrayIndex", v) => bail!(
                        28810,
                        "expected a non-empty string for the includeArrayIndex  option to $unwind stage, got {}",
                        v.type_name()
                    ),
                    (other, _) => bail!(28811, "unrecognized option to $unwind stage: {other}"),
                }
            }
        }
        v => bail!(
            15981,
            "expected either a string or an object as specification for $unwind stage, got {}",
            v.type_name()
        ),
    }
    let Some(path) = path.filter(|p| !p.is_empty()) else {
        bail!(28812, "no path specified to $unwind stage")
    };
    let Some(path) = path.strip_prefix('$') else {
        bail!(28818, "path option to $unwind stage should be prefixed with a '$': {path}");
    };
    if path.contains('\0') {
        bail!(16419, "FieldPath field names may not contain '\\0'");
    }
    if index.is_some_and(|i| i.starts_with('$')) {
        bail!(
            28822,
            "includeArrayIndex option to $unwind stage should not be prefixed with a '$': {}",
            index.unwrap_or("")
        );
    }
    let index = index.map(FieldPath::parse).transpose()?;
    one(name, v, Unwind { path: FieldPath::parse(path)?, index, preserve })
}
