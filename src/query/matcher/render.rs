//! A filter's tree as a document again, in the normal form explain prints.

use crate::matcher::ast::{Comparison, Condition, InSet, Leaf, Node, Test, TypeSet};
use crate::matcher::ops::geo;
use document::{Document, Regex, Value, doc};

/// The filter in normal form: `{a: 1}` becomes `{a: {$eq: 1}}`.
pub fn node(n: &Node) -> Document {
    match n {
        Node::True => Document::new(),
        Node::False => doc! {"$alwaysFalse": 1},
        Node::And(list) => doc! {"$and": nodes(list)},
        Node::Or(list) => doc! {"$or": nodes(list)},
        Node::Nor(list) => doc! {"$nor": nodes(list)},
        Node::Not(inner) => match &**inner {
            Node::Leaf(l) => {
                let mut out = Document::new();
                out.push(&*l.path.text, doc! {"$not": test(&l.test)});
                out
            }
            other => doc! {"$nor": nodes(std::slice::from_ref(other))},
        },
        Node::Leaf(l) => leaf(l),
        Node::Expr(e) => doc! {"$expr": e.computed.source()},
        Node::Schema(_) => doc! {"$jsonSchema": Document::new()},
        Node::Text(q) => doc! {"$text": q.spec()},
        Node::MayHold(leaf) => geo::shown_of_bucket(leaf),
        Node::Script(function) => doc! {"$where": Value::JavaScript(function.code().to_string())},
        Node::SampleRate { rate, .. } => doc! {"$sampleRate": *rate},
    }
}

fn nodes(list: &[Node]) -> Value {
    Value::Array(list.iter().map(|n| Value::Document(node(n))).collect())
}

fn leaf(l: &Leaf) -> Document {
    let mut out = Document::new();
    out.push(&*l.path.text, test(&l.test));
    out
}

fn test(t: &Test) -> Document {
    match t {
        Test::Compare(op, operand) => {
            let name = match op {
                Comparison::Eq => "$eq",
                Comparison::Lt => "$lt",
                Comparison::Lte => "$lte",
                Comparison::Gt => "$gt",
                Comparison::Gte => "$gte",
            };
            let mut out = Document::new();
            out.push(name, operand.value());
            out
        }
        Test::In(set) => doc! {"$in": in_list(set)},
        Test::Exists => doc! {"$exists": true},
        Test::Type(types) => doc! {"$type": type_list(types)},
        Test::Regex(p) => {
            let mut out = doc! {"$regex": p.source.as_str()};
            if !p.options.is_empty() {
                out.push("$options", p.options.as_str());
            }
            out
        }
        Test::Size(n) => doc! {"$size": *n},
        Test::ElemMatchObject(n) => doc! {"$elemMatch": node(n)},
        Test::ElemMatchValue(list) => doc! {"$elemMatch": conditions(list)},
        Test::Other(other) => other.describe(),
    }
}

fn conditions(list: &[Condition]) -> Document {
    let mut out = Document::new();
    for c in list {
        match c {
            Condition::Test(t) => out.0.extend(test(t).0),
            Condition::All(inner) => out.0.extend(conditions(inner).0),
            Condition::Not(inner) => out.push("$not", conditions(std::slice::from_ref(inner))),
        }
    }
    out
}

fn in_list(set: &InSet) -> Value {
    let values = set.values.iter().map(|v| v.value().to_value());
    let patterns = set
        .patterns
        .iter()
        .map(|p| Value::from(Regex { pattern: p.source.clone(), options: p.options.clone() }));
    Value::Array(values.chain(patterns).collect())
}

fn type_list(types: &TypeSet) -> Value {
    let number = types.any_number.then(|| Value::from("number"));
    Value::Array(number.into_iter().chain(types.tags.iter().map(|t| Value::Int32(*t as i8 as i32))).collect())
}
