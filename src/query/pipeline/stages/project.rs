//! `$project`, `$addFields` (`$set`) and `$unset`.
//!
//! All three are one tree of fields. The top level is done on bytes: fields that are kept are copied as they are. What
//! lies deeper, or is computed, goes through values.
//!
//! ```text
//! $project {a: 1, "b.c": "$x"}   mode Include   a: Keep   b: { c: Compute }
//! $project {a: 0}, $unset "a"    mode Exclude   a: Drop
//! $addFields {a: .., "b.c": ..}  mode Add       a: Compute   b: { c: Compute }
//! ```

use crate::expression::field_path::{FieldPath, check_field_name};
use crate::expression::{Expression, Variables, Vars, parse as expressions};
use crate::names::Names;
use crate::pipeline::hidden;
use crate::pipeline::{Batch, Context, Flow, Needs, Parsed, Plan, Run, Stage, parse::one};
use document::{Doc, DocBuf, DocWriter, Document, Error, Result, Value, ValueRef, bail};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Include,
    Exclude,
    Add,
}

#[derive(Clone, Debug)]
enum Field {
    Keep,
    Drop,
    Compute(Expression),
    Nested(Tree),
}

/// Fields in the order of the specification.
#[derive(Clone, Debug, Default)]
struct Tree {
    fields: Names<Field>,
}

impl Tree {
    fn get(&self, name: &str) -> Option<&Field> {
        self.fields.get(name)
    }
    /// Whether anything below is computed, so that documents are made where there are none.
    fn computes(&self) -> bool {
        self.fields.iter().any(|(_, f)| match f {
            Field::Compute(_) => true,
            Field::Nested(t) => t.computes(),
            _ => false,
        })
    }
    /// Adds a path. Errors: 31249 and 31250 for paths that collide (40176 in `$addFields`).
    fn insert(&mut self, path: &[Box<str>], whole: &str, field: Field) -> Result<()> {
        let Some((name, rest)) = path.split_first() else { return Ok(()) };
        let existing = self.fields.get_mut(name);
        match (existing, rest.is_empty()) {
            (None, true) => self.fields.push(name.to_string(), field),
            (None, false) => {
                let mut inner = Tree::default();
                inner.insert(rest, whole, field)?;
                self.fields.push(name.to_string(), Field::Nested(inner));
            }
            (Some(Field::Nested(inner)), false) => inner.insert(rest, whole, field)?,
            (Some(_), true) => bail!(31250, "Path collision at {whole}"),
            (Some(_), false) => {
                bail!(31249, "Path collision at {whole} remaining portion {}", rest.join("."))
            }
        }
        Ok(())
    }
    /// As a specification; `None` where anything is dropped or computed.
    fn inclusion(&self) -> Option<Document> {
        let kept = |(name, field): &(String, Field)| {
            let v = match field {
                Field::Keep => Value::Boolean(true),
                Field::Nested(inner) => Value::Document(inner.inclusion()?),
                Field::Drop | Field::Compute(_) => return None,
            };
            Some((name.clone(), v))
        };
        self.fields.iter().map(kept).collect()
    }
    fn needs(&self, prefix: &str, out: &mut Vec<String>) -> bool {
        self.fields.iter().all(|(name, f)| {
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            match f {
                Field::Keep => {
                    out.push(path);
                    true
                }
                Field::Drop => true,
                Field::Compute(e) => match e.needed_fields() {
                    Some(fields) => {
                        out.extend(fields);
                        true
                    }
                    None => false,
                },
                Field::Nested(t) => {
                    // Computed fields go into each document that is there.
                    if t.computes() {
                        out.push(path.clone());
                    }
                    t.needs(&path, out)
                }
            }
        })
    }
}

#[derive(Clone, Debug)]
pub struct Shape {
    mode: Mode,
    tree: Tree,
}

impl Shape {
    /// The document this makes of `root`.
    pub fn apply(&self, root: Doc<'_>, vars: &mut Vars) -> Result<DocBuf> {
        let mut bytes = Vec::with_capacity(root.bytes().len());
        let mut failed = Ok(());
        DocWriter::write(&mut bytes, |w| failed = self.write(root, vars, w));
        failed?;
        crate::depth::checked(DocBuf::from_validated(bytes))
    }

    fn write(&self, root: Doc<'_>, vars: &mut Vars, w: &mut DocWriter<'_>) -> Result<()> {
        let mut written = vec![false; self.tree.fields.len()];
        for e in root.iter() {
            let at = self.tree.fields.position(e.name());
            let Some(at) = at else {
                if self.mode != Mode::Include {
                    w.element(&e);
                }
                continue;
            };
            let (name, field) = self.tree.fields.at(at);
            match field {
                Field::Keep => w.element(&e),
                Field::Drop => {}
                // Computed fields of a $project come after the kept ones, in their own order.
                Field::Compute(_) if self.mode == Mode::Include => continue,
                Field::Compute(expression) => {
                    if let Some(v) = expression.eval(root, vars)? {
                        v.write(w, name);
                    }
                }
                Field::Nested(tree) => {
                    if self.mode == Mode::Exclude
                        && !matches!(e.value(), ValueRef::Document(_) | ValueRef::Array(_))
                    {
                        w.element(&e);
                    } else if let Some(v) = self.nested(tree, Some(e.value().to_value()), root, vars)? {
                        v.write(w, name);
                    }
                }
            }
            written[at] = true;
        }
        for ((name, field), written) in self.tree.fields.iter().zip(written) {
            let v = match field {
                _ if written => continue,
                Field::Compute(e) => e.eval(root, vars)?,
                Field::Nested(tree) if tree.computes() => self.nested(tree, None, root, vars)?,
                _ => None,
            };
            if let Some(v) = v {
                v.write(w, name);
            }
        }
        Ok(())
    }

    /// What a sub-tree makes of the value under its name.
    fn nested(&self, tree: &Tree, v: Option<Value>, root: Doc<'_>, vars: &mut Vars) -> Result<Option<Value>> {
        match v {
            Some(Value::Document(d)) => Ok(Some(Value::Document(self.document(tree, d, root, vars)?))),
            Some(Value::Array(items)) => {
                let mut out = Vec::with_capacity(items.len());
                for item in items {
                    out.extend(self.nested(tree, Some(item), root, vars)?);
                }
                Ok(Some(Value::Array(out)))
            }
            Some(v) if self.mode == Mode::Exclude => Ok(Some(v)),
            _ if tree.computes() => {
                let d = self.document(tree, Document::new(), root, vars)?;
                Ok(Some(Value::Document(d)))
            }
            _ => Ok(None),
        }
    }

    fn document(&self, tree: &Tree, d: Document, root: Doc<'_>, vars: &mut Vars) -> Result<Document> {
        let mut out = Document::new();
        let mut written = vec![false; tree.fields.len()];
        for (name, v) in d {
            let Some(at) = tree.fields.position(&name) else {
                if self.mode != Mode::Include {
                    out.push(name, v);
                }
                continue;
            };
            let v = match &tree.fields.at(at).1 {
                Field::Keep => Some(v),
                Field::Drop => None,
                Field::Compute(_) if self.mode == Mode::Include => continue,
                Field::Compute(e) => e.eval(root, vars)?,
                Field::Nested(inner) => self.nested(inner, Some(v), root, vars)?,
            };
            written[at] = true;
            if let Some(v) = v {
                out.push(name, v);
            }
        }
        for ((name, field), written) in tree.fields.iter().zip(written) {
            let v = match field {
                _ if written => continue,
                Field::Compute(e) => e.eval(root, vars)?,
                Field::Nested(inner) if inner.computes() => self.nested(inner, None, root, vars)?,
                _ => None,
            };
            if let Some(v) = v {
                out.push(name.as_str(), v);
            }
        }
        Ok(out)
    }
}

#[derive(Clone, Debug)]
struct Project(Arc<Shape>);

struct Running {
    shape: Arc<Shape>,
    vars: Vars,
}

impl Plan for Project {
    fn start(&self, run: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Running { shape: self.0.clone(), vars: run.vars.clone() }))
    }
    fn needs(&self) -> Needs {
        let mut paths = Vec::new();
        if !self.0.tree.needs("", &mut paths) {
            return Needs::Everything;
        }
        if self.0.mode == Mode::Include { Needs::Only(paths) } else { Needs::Passing(paths) }
    }
    fn inclusion(&self) -> Option<Document> {
        let mut out = self.0.tree.inclusion().filter(|_| self.0.mode == Mode::Include)?;
        match out.remove("_id") {
            Some(id) => out.0.insert(0, ("_id".to_string(), id)),
            None => out.push("_id", false),
        }
        Some(out)
    }
}

impl Stage for Running {
    fn push(&mut self, d: DocBuf, out: &mut Batch) -> Result<Flow> {
        out.push(self.shape.apply(d.doc(), &mut self.vars)?)?;
        Ok(Flow::Continue)
    }
}

fn context(e: Error, name: &str) -> Error {
    e.context(format!("Invalid {name}"))
}

/// `{a: 1, b: 0, c: <expression>, d: {e: 1}}`.
pub fn project(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    let Value::Document(d) = v else { bail!(15969, "$project specification must be an object") };
    let shape = parse_project(d, &ctx.scope()).map_err(|e| context(e, name))?;
    one(name, v, Project(Arc::new(shape)))
}

/// Whether a leaf of a `$project` includes or excludes; `None` when it is an expression.
fn truth(v: &Value) -> Option<bool> {
    match v {
        Value::Boolean(b) => Some(*b),
        v if v.is_number() => Some(v.truthy()),
        _ => None,
    }
}

struct Parser<'a> {
    vars: &'a Variables,
    mode: Option<Mode>,
    tree: Tree,
    id: Option<bool>,
    has_metadata: bool,
}

pub fn parse_project(d: &Document, vars: &Variables) -> Result<Shape> {
    if d.is_empty() {
        bail!(51272, "projection specification must have at least one field");
    }
    let mut p = Parser { vars, mode: None, tree: Tree::default(), id: None, has_metadata: false };
    for (name, v) in d.iter() {
        p.field(name, v, true)?;
    }
    // {_id: 0} alone excludes; {_id: 1} alone includes.
    let excludes = p.id == Some(false) && !p.has_metadata;
    let mode = p.mode.unwrap_or(if excludes { Mode::Exclude } else { Mode::Include });
    match (mode, p.id) {
        (Mode::Include, None) if p.tree.get("_id").is_none() => {
            p.tree.fields.push_front("_id".into(), Field::Keep);
        }
        (Mode::Include, Some(true)) => p.tree.insert(&["_id".into()], "_id", Field::Keep)?,
        (Mode::Exclude, Some(false)) => p.tree.insert(&["_id".into()], "_id", Field::Drop)?,
        _ => {}
    }
    Ok(Shape { mode, tree: p.tree })
}

impl Parser<'_> {
    fn field(&mut self, path: &str, v: &Value, top: bool) -> Result<()> {
        if top && path.starts_with('$') {
            check_field_name(path)?;
        }
        if path.ends_with(".$") {
            bail!(31324, "Cannot use positional projection in aggregation projection");
        }
        let parts = FieldPath::parse(path)?;
        match v {
            Value::Document(d) if d.is_empty() => {
                bail!(51270, "An empty sub-projection is not a valid value. Found empty object at path")
            }
            Value::Document(d) if d.first().is_some_and(|(k, _)| k.starts_with('$')) => {
                if d.len() > 1 {
                    bail!(
                        16410,
                        "FieldPath field names may not start with '$'. Consider using $getField or $setField."
                    );
                }
                self.computed(&parts, path, v)
            }
            Value::Document(d) => {
                for (name, inner) in d.iter() {
                    if name.starts_with('$') {
                        bail!(31325, "Unknown expression {name}");
                    }
                    FieldPath::parse(name)?;
                    self.field(&format!("{path}.{name}"), inner, false)?;
                }
                Ok(())
            }
            v => match truth(v) {
                Some(include) => self.leaf(&parts, path, include),
                None => self.computed(&parts, path, v),
            },
        }
    }

    fn leaf(&mut self, parts: &FieldPath, path: &str, include: bool) -> Result<()> {
        if path == "_id" {
            if self.id.replace(include).is_some() {
                bail!(31250, "Path collision at _id");
            }
            return Ok(());
        }
        let wanted = if include { Mode::Include } else { Mode::Exclude };
        match (self.mode, include) {
            (Some(Mode::Include), false) => {
                bail!(31254, "Cannot do exclusion on field {path} in inclusion projection")
            }
            (Some(Mode::Exclude), true) => {
                bail!(31253, "Cannot do inclusion on field {path} in exclusion projection")
            }
            _ => self.mode = Some(wanted),
        }
        let field = if include { Field::Keep } else { Field::Drop };
        self.tree.insert(parts.parts(), path, field)
    }

    fn computed(&mut self, parts: &FieldPath, path: &str, v: &Value) -> Result<()> {
        // What is known beside a document is added to it, whatever is done with its fields.
        if matches!(v, Value::Document(d) if d.contains_key("$meta")) || hidden::is_read_by(v) {
            self.has_metadata = true;
            let e = Expression::parse(v, self.vars)?;
            return self.tree.insert(parts.parts(), path, Field::Compute(e));
        }
        if self.mode == Some(Mode::Exclude) {
            if matches!(v, Value::Document(_)) {
                bail!(31252, "Cannot use expression other than $meta in exclusion projection");
            }
            bail!(
                31310,
                "Cannot use an expression {path}: {} in an exclusion projection",
                expressions::show(v)
            );
        }
        if let Value::Document(d) = v
            && let Some((name, _)) = d.first()
            && d.len() == 1
            && crate::expression::table::find(name).is_none()
            && name != "$elemMatch"
        {
            bail!(31325, "Unknown expression {name}");
        }
        self.mode = Some(Mode::Include);
        let e = Expression::parse(v, self.vars)?;
        self.tree.insert(parts.parts(), path, Field::Compute(e))
    }
}

/// `{a: <expression>, "b.c": <expression>, d: {e: <expression>}}`.
pub fn add_fields(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    let Value::Document(d) = v else {
        bail!(40272, "{name} specification stage must be an object, got {}", v.type_name());
    };
    let shape = parse_add(d, &ctx.scope()).map_err(|e| context(e, name))?;
    one(name, v, Project(Arc::new(shape)))
}

pub fn parse_add(d: &Document, vars: &Variables) -> Result<Shape> {
    let mut tree = Tree::default();
    for (path, v) in d.iter() {
        add_one(&mut tree, path, v, vars, true)?;
    }
    Ok(Shape { mode: Mode::Add, tree })
}

fn add_one(tree: &mut Tree, path: &str, v: &Value, vars: &Variables, top: bool) -> Result<()> {
    let parts = FieldPath::parse(path)?;
    match v {
        Value::Document(d) if d.first().is_some_and(|(k, _)| !k.starts_with('$')) => {
            for (name, inner) in d.iter() {
                if name.contains('.') {
                    bail!(
                        40183,
                        "cannot use dotted field name '{name}' in a sub object: {}",
                        expressions::show(v)
                    );
                }
                if name.starts_with('$') {
                    bail!(
                        40182,
                        "cannot mix expressions and fields in a sub object: {}",
                        expressions::show(v)
                    );
                }
                add_one(tree, &format!("{path}.{name}"), inner, vars, false)?;
            }
            Ok(())
        }
        Value::Document(d) if d.len() > 1 => {
            bail!(
                40181,
                "an object representing an expression must have exactly one field: {}",
                expressions::show(v)
            )
        }
        v => {
            let _ = top;
            let field = Field::Compute(Expression::parse(v, vars)?);
            tree.insert(parts.parts(), path, field).map_err(|e| {
                Error::new(40176, format!("specification contains two conflicting paths. {}", e.message))
            })
        }
    }
}

/// `"a"` or `["a", "b.c"]`.
pub fn unset(name: &'static str, v: &Value, _: &Context) -> Result<Vec<Parsed>> {
    let list = match v {
        Value::String(_) => std::slice::from_ref(v),
        Value::Array(items) if items.is_empty() => {
            bail!(31119, "$unset specification must be a string or an array with at least one field")
        }
        Value::Array(items) => items.as_slice(),
        _ => bail!(31002, "$unset specification must be a string or an array"),
    };
    let paths: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
    let Some(paths) = paths else {
        bail!(31120, "$unset specification must be a string or an array containing only string values");
    };
    if paths.iter().any(|path| path.contains('\0')) {
        bail!(9527900, "Field names cannot contain embedded null bytes");
    }
    let mut tree = Tree::default();
    for path in paths {
        let insert = FieldPath::parse(path).and_then(|p| tree.insert(p.parts(), path, Field::Drop));
        insert.map_err(|e| context(e, name))?;
    }
    one(name, v, Project(Arc::new(Shape { mode: Mode::Exclude, tree })))
}
