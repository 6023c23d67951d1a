//! From the specification to the tree of what is kept, dropped, cut and computed.

use super::{Appended, Branch, Cut, Cuts, Kind, Plain, Projection, Slice, Tree};
use crate::QueryContext;
use crate::computed::Computed;
use crate::matcher::Matcher;
use crate::matcher::ast::Node;
use crate::matcher::path::Path;
use crate::pipeline::sort_key;
use crate::sort::field_path;
use crate::text;
use document::{Doc, DocWriter, Element, Result, ValueRef, bail, meter, number};

/// One entry of the specification, nested documents flattened into dotted paths.
enum Item {
    Keep,
    Drop,
    Slice(Slice),
    ElemMatch(Matcher),
    Positional,
    Computed(Computed),
    /// `$meta`, beside inclusion or exclusion alike.
    Meta(Computed),
}

struct Parser<'a> {
    ctx: &'a QueryContext,
    items: Vec<(String, Item)>,
}

pub(super) fn projection(spec: Doc<'_>, filter: &Matcher, ctx: &QueryContext) -> Result<Projection> {
    let own;
    let ctx = match filter.text() {
        Some(text) => {
            own = QueryContext { text: Some(text.clone()), ..ctx.clone() };
            &own
        }
        None => ctx,
    };
    let mut parser = Parser { ctx, items: Vec::new() };
    for e in spec {
        meter::spend(1)?;
        parser.entry("", &e)?;
    }
    build(parser.items, filter, spec)
}

impl Parser<'_> {
    fn entry(&mut self, prefix: &str, e: &Element<'_>) -> Result<()> {
        let path = if prefix.is_empty() { e.name().to_string() } else { format!("{prefix}.{}", e.name()) };
        if path.ends_with(".$") {
            return self.positional(path, e);
        }
        if path.contains(".$.") {
            bail!(
                31394,
                "As of 4.4, it's illegal to specify positional operator in the middle of a path.Positional projection may only be used at the end, for example: a.b.$. If the query previously used a form like a.b.$.d, remove the parts following the '$' and the results will be equivalent."
            );
        }
        field_path(&path)?;
        let item = match e.value() {
            ValueRef::Boolean(b) => keep_if(b),
            v if v.is_number() => keep_if(v.truthy()),
            ValueRef::Document(d) => match d.iter().next() {
                None => {
                    bail!(51270, "An empty sub-projection is not a valid value. Found empty object at path")
                }
                Some(first) if first.name().starts_with('$') => self.operator(&path, d, &first)?,
                Some(_) => {
                    for child in d {
                        self.entry(&path, &child)?;
                    }
                    return Ok(());
                }
            },
            v => Item::Computed(Computed::parse(&v.to_value(), self.ctx)?),
        };
        self.items.push((path, item));
        Ok(())
    }

    fn positional(&mut self, path: String, e: &Element<'_>) -> Result<()> {
        let path = path.trim_end_matches(".$").to_string();
        if path.contains('$') && path.split('.').any(|p| p == "$") {
            bail!(
                31394,
                "As of 4.4, it's illegal to specify positional operator in the middle of a path.Positional projection may only be used at the end, for example: a.b.$. If the query previously used a form like a.b.$.d, remove the parts following the '$' and the results will be equivalent."
            );
        }
        field_path(&path)?;
        let included = match e.value() {
            ValueRef::Boolean(b) => b,
            v if v.is_number() => v.truthy(),
            ValueRef::Document(d) => {
                bail!(
                    31271,
                    "positional projection cannot be used with an expression or sub object: {}",
                    text::document(d)
                )
            }
            _ => bail!(31308, "positional projection cannot be used with a literal"),
        };
        if !included {
            bail!(31395, "positional projection cannot be used with exclusion");
        }
        self.items.push((path, Item::Positional));
        Ok(())
    }

    fn operator(&self, path: &str, d: Doc<'_>, first: &Element<'_>) -> Result<Item> {
        match first.name() {
            "$slice" if is_find_slice(first.value()) => {
                self.alone(d)?;
                Ok(Item::Slice(slice(first.value())?))
            }
            "$elemMatch" => {
                self.alone(d)?;
                let ValueRef::Document(_) = first.value() else {
                    bail!(
                        31274,
                        "elemMatch: Invalid argument, object required, but got {}",
                        first.value().type_name()
                    );
                };
                for condition in first.value().as_document().unwrap_or(Doc::empty()) {
                    match condition.name() {
                        "$sampleRate" => bail!(BAD_VALUE, "$sampleRate is not allowed in this context"),
                        "$jsonSchema" => {
                            bail!(QUERY_FEATURE_NOT_ALLOWED, "$jsonSchema is not allowed in this context")
                        }
                        _ => {}
                    }
                }
                if path.contains('.') {
                    bail!(31275, "Cannot use $elemMatch projection on a nested field");
                }
                let condition = first.value().as_document().unwrap_or(Doc::empty());
                if condition.iter().next().is_some_and(|e| !e.name().starts_with('$')) {
                    Matcher::parse(condition, self.ctx)?.refuse_near()?;
                }
                let filter = DocWriter::build(|w| w.document(path, d));
                Ok(Item::ElemMatch(Matcher::parse(filter.doc(), self.ctx)?))
            }
            "$meta" | sort_key::OPERATOR => {
                let v = document::Value::Document(d.to_document());
                Ok(Item::Meta(Computed::parse(&v, self.ctx)?))
            }
            name if crate::expression::table::find(name).is_none() => {
                bail!(31325, "Unknown expression {name}")
            }
            _ => Ok(Item::Computed(Computed::parse(&document::Value::Document(d.to_document()), self.ctx)?)),
        }
    }

    fn alone(&self, d: Doc<'_>) -> Result<()> {
        if d.iter().count() > 1 {
            bail!(
                16410,
                "FieldPath field names may not start with '$'. Consider using $getField or $setField."
            );
        }
        Ok(())
    }
}

fn keep_if(b: bool) -> Item {
    if b { Item::Keep } else { Item::Drop }
}

/// A number or [number, number]; anything else is the aggregation expression of the same name.
fn is_find_slice(v: ValueRef<'_>) -> bool {
    match v {
        ValueRef::Array(a) => {
            let mut items = a.iter();
            let (first, second) = (items.next(), items.next());
            let null = |e: document::Element<'_>| matches!(e.value(), ValueRef::Null | ValueRef::Undefined);
            let found = first.is_some_and(|f| f.value().is_number()) && second.is_some_and(|s| !null(s));
            found && items.next().is_none()
        }
        v => v.is_number(),
    }
}

fn slice(v: ValueRef<'_>) -> Result<Slice> {
    let whole = |v: ValueRef<'_>| {
        number::to_i64_saturating(&v.to_value()).unwrap_or(0).clamp(i32::MIN as i64, i32::MAX as i64)
    };
    let ValueRef::Array(a) = v else {
        let n = whole(v);
        return Ok(if n < 0 { Slice { skip: n, count: -n } } else { Slice { skip: 0, count: n } });
    };
    let parts: Vec<ValueRef<'_>> = a.iter().map(|e| e.value()).collect();
    let (Some(skip), Some(count)) = (parts.first(), parts.get(1)) else {
        bail!(28724, "First argument to $slice must be an array, but is of type: int");
    };
    if !count.is_number() {
        bail!(28724, "First argument to $slice must be an array, but is of type: {}", skip.type_name());
    }
    let count = whole(*count);
    if count <= 0 {
        bail!(28724, "First argument to $slice must be an array, but is of type: {}", skip.type_name());
    }
    Ok(Slice { skip: whole(*skip), count })
}

fn build(items: Vec<(String, Item)>, filter: &Matcher, spec: Doc<'_>) -> Result<Projection> {
    let kind = kind_of(&items)?;
    let mut p = Projection {
        kind,
        tree: Tree::default(),
        id: true,
        appended: Vec::new(),
        cuts: Cuts::default(),
        positional: None,
        plain: None,
        spec: spec.to_owned(),
    };
    for (path, item) in items {
        if path == "_id" && matches!(item, Item::Keep | Item::Drop) {
            p.id = matches!(item, Item::Keep);
            continue;
        }
        add_item(&mut p, path, item, filter)?;
    }
    if let Some(Branch::Sub(_) | Branch::Computed) = p.tree.find("_id") {
        p.id = false;
    }
    p.plain = Plain::of(&p);
    Ok(p)
}

fn add_item(p: &mut Projection, path: String, item: Item, filter: &Matcher) -> Result<()> {
    match item {
        Item::Keep | Item::Drop => insert(&mut p.tree, &path, Branch::Leaf, &path),
        Item::Slice(s) => {
            insert(&mut p.tree, &path, Branch::Cut, &path)?;
            p.cuts.insert(&path, Cut::Slice(s));
            Ok(())
        }
        Item::ElemMatch(matcher) => {
            if p.positional.is_some() {
                bail!(31255, "Cannot specify positional operator and $elemMatch.");
            }
            insert(&mut p.tree, &path, Branch::Computed, &path)?;
            p.appended.push(Appended::ElemMatch { field: path, matcher });
            Ok(())
        }
        Item::Positional => {
            if p.appended.iter().any(|a| matches!(a, Appended::ElemMatch { .. })) {
                bail!(31256, "Cannot specify positional operator and $elemMatch.");
            }
            if p.positional.is_some() {
                bail!(31276, "Cannot specify more than one positional projection per query.");
            }
            if has_expr(filter.root()) {
                bail!(
                    QUERY_FEATURE_NOT_ALLOWED,
                    "$expr is not allowed in the context of a positional projection"
                );
            }
            insert(&mut p.tree, &path, Branch::Leaf, &path)?;
            p.cuts.insert(&path, Cut::Positional);
            p.positional = Some(Box::new((Path::new(&path), filter.clone())));
            Ok(())
        }
        Item::Computed(expression) | Item::Meta(expression) => {
            insert(&mut p.tree, &path, Branch::Computed, &path)?;
            p.appended.push(Appended::Computed { path, expression });
            Ok(())
        }
    }
}

/// The first entry that decides between inclusion and exclusion must agree with all the others.
fn kind_of(items: &[(String, Item)]) -> Result<Kind> {
    let mut kind = None;
    for (path, item) in items {
        let says = match item {
            Item::Keep if path == "_id" => continue,
            Item::Drop if path == "_id" => continue,
            Item::Slice(_) | Item::ElemMatch(_) | Item::Meta(_) => continue,
            Item::Drop => Kind::Exclusion,
            Item::Keep | Item::Positional | Item::Computed(_) => Kind::Inclusion,
        };
        match (kind, says, item) {
            (None, _, _) => kind = Some(says),
            (Some(k), s, _) if k == s => {}
            (Some(Kind::Inclusion), _, _) => {
                bail!(31254, "Cannot do exclusion on field {path} in inclusion projection")
            }
            (_, _, Item::Positional) => bail!(31395, "positional projection cannot be used with exclusion"),
            (_, _, Item::Computed(_)) => {
                bail!(31252, "Cannot use expression other than $meta in exclusion projection")
            }
            _ => bail!(31253, "Cannot do inclusion on field {path} in exclusion projection"),
        }
    }
    let id = items.iter().rev().find_map(|(path, item)| match item {
        Item::Keep if path == "_id" => Some(Kind::Inclusion),
        Item::Drop if path == "_id" => Some(Kind::Exclusion),
        _ => None,
    });
    if kind.is_none() && items.iter().any(|(_, item)| matches!(item, Item::ElemMatch(_))) {
        return Ok(Kind::Inclusion);
    }
    let only_id = items.iter().all(|(path, _)| path == "_id");
    Ok(kind.unwrap_or(match id {
        Some(k) if only_id || k == Kind::Inclusion => k,
        _ => Kind::Exclusion,
    }))
}

fn insert(tree: &mut Tree, path: &str, branch: Branch, whole: &str) -> Result<()> {
    let Some((head, rest)) = path.split_once('.') else {
        if tree.find(path).is_some() {
            bail!(31250, "Path collision at {whole}");
        }
        tree.0.push(path.to_string(), branch);
        return Ok(());
    };
    match tree.0.get_mut(head) {
        None => {
            let mut sub = Tree::default();
            insert(&mut sub, rest, branch, whole)?;
            tree.0.push(head.to_string(), Branch::Sub(sub));
            Ok(())
        }
        Some(Branch::Sub(sub)) => insert(sub, rest, branch, whole),
        Some(_) => bail!(31249, "Path collision at {whole} remaining portion {rest}"),
    }
}

fn has_expr(node: &Node) -> bool {
    match node {
        Node::And(list) | Node::Or(list) | Node::Nor(list) => list.iter().any(has_expr),
        Node::Not(inner) => has_expr(inner),
        Node::Expr(_) => true,
        _ => false,
    }
}
