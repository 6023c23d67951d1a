//! `$unwind`: one document for each element of an array.

use crate::expression::FieldPath;
use crate::pipeline::{Batch, Context, Flow, Needs, Parsed, Plan, Run, Stage, parse::one};
use document::{Doc, DocBuf, DocWriter, Document, Result, Value, ValueRef, bail};

#[derive(Clone, Debug)]
struct Unwind {
    path: FieldPath,
    index: Option<FieldPath>,
    preserve: bool,
}

/// An array that is being gone through.
struct Pending {
    doc: DocBuf,
    /// Position of the next element among the array's bytes, and its index.
    at: usize,
    index: i64,
    /// The document as a tree, where the path or the index needs one.
    tree: Option<Document>,
}

struct Running {
    plan: Unwind,
    pending: Option<Pending>,
}

impl Plan for Unwind {
    fn start(&self, _: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Running { plan: self.clone(), pending: None }))
    }
    fn needs(&self) -> Needs {
        Needs::Passing(vec![self.path.to_string()])
    }
}

impl Stage for Running {
    fn push(&mut self, d: DocBuf, out: &mut Batch) -> Result<Flow> {
        match through_documents(d.doc(), &self.plan.path) {
            Some(ValueRef::Array(items)) if !items.is_empty() => {
                let plain = self.plan.path.parts().len() == 1 && self.plan.index.is_none();
                let tree = (!plain).then(|| d.to_document());
                self.pending = Some(Pending { doc: d, at: 0, index: 0, tree });
                self.resume(out)
            }
            None | Some(ValueRef::Null | ValueRef::Undefined | ValueRef::Array(_)) if !self.plan.preserve => {
                Ok(Flow::Continue)
            }
            found => {
                let empty = matches!(found, Some(ValueRef::Array(_)));
                out.push(self.plan.preserved(d, empty))?;
                Ok(Flow::Continue)
            }
        }
    }
    fn resume(&mut self, out: &mut Batch) -> Result<Flow> {
        let Some(pending) = &mut self.pending else { return Ok(Flow::Continue) };
        let d = pending.doc.doc();
        if let Some(ValueRef::Array(items)) = through_documents(d, &self.plan.path) {
            let mut elements = items.iter_at(pending.at);
            while let Some(item) = elements.next() {
                let one = match (&mut pending.tree, self.plan.path.parts()) {
                    (None, [name]) => splice(d, name, &item),
                    (tree, _) => {
                        let tree = tree.get_or_insert_with(|| d.to_document());
                        self.plan.with_element(tree, &item, pending.index)
                    }
                };
                pending.index += 1;
                pending.at = elements.position();
                out.push(one)?;
                if out.is_full() {
                    return Ok(Flow::More);
                }
            }
        }
        self.pending = None;
        Ok(Flow::Continue)
    }
}

impl Unwind {
    /// A document without an array. An empty array is dropped from it.
    fn preserved(&self, d: DocBuf, empty: bool) -> DocBuf {
        if !empty && self.index.is_none() {
            return d;
        }
        let mut tree = d.to_document();
        if empty {
            remove(&mut tree, self.path.parts());
        }
        if let Some(index) = &self.index {
            set(&mut tree, index.parts(), Value::Null);
        }
        tree.to_doc_buf()
    }
    fn with_element(&self, tree: &mut Document, item: &document::Element<'_>, at: i64) -> DocBuf {
        set(tree, self.path.parts(), item.value().to_value());
        match &self.index {
            None => tree.to_doc_buf(),
            Some(index) => {
                let mut indexed = tree.clone();
                set(&mut indexed, index.parts(), Value::Int64(at));
                indexed.to_doc_buf()
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
