//! Whether a query asks only for documents that a partial index holds.

use crate::QueryContext;
use crate::matcher::ast::TypeSet;
use crate::matcher::ops::comparison::compare_matches_missing;
use crate::matcher::{Comparison, Leaf, Matcher, Node, Operand, Test};
use document::compare::canonical_type;
use document::{Collation, Doc, meter};
use std::cmp::Ordering;

/// Whether everything that `query` matches also matches the index's filter. May say no where the truth is yes, but not because the
/// operation's time is over: it would then seem to have no index.
pub(super) fn implies(query: &Matcher, index_filter: Doc<'_>, of_index: &Collation) -> bool {
    let ctx = QueryContext::collated(of_index);
    match meter::unbroken(|| Matcher::parse(index_filter, &ctx)) {
        Ok(wanted) => implies_node(query.root(), wanted.root()),
        Err(_) => false,
    }
}

fn implies_node(query: &Node, wanted: &Node) -> bool {
    match wanted {
        Node::True => true,
        Node::And(all) => all.iter().all(|w| implies_node(query, w)),
        Node::Or(any) => {
            any.iter().any(|w| implies_node(query, w))
                || matches!(query, Node::Or(branches) if branches.iter().all(|b| implies_node(b, wanted)))
        }
        Node::Leaf(wanted) => match query {
            Node::Or(branches) => branches.iter().all(|b| implies_node(b, &Node::Leaf(wanted.clone()))),
            _ => query.conjuncts().iter().any(|c| match c {
                Node::Leaf(have) => have.path == wanted.path && implies_leaf(have, wanted),
                Node::Not(inner) => {
                    matches!((&**inner, &wanted.test), (Node::Leaf(have), Test::Exists) if is_there(have, wanted))
                }
                Node::Or(_) => implies_node(c, &Node::Leaf(wanted.clone())),
                _ => false,
            }),
        },
        _ => false,
    }
}

/// Whether what is not `absent` is there: what is not null is, unless the path leads into an array, which may be empty.
fn is_there(absent: &Leaf, wanted: &Leaf) -> bool {
    let null = matches!(&absent.test, Test::Compare(Comparison::Eq, v) if v.is_null());
    null && absent.path == wanted.path && !absent.path.text.contains('.')
}

fn implies_leaf(have: &Leaf, wanted: &Leaf) -> bool {
    match (&have.test, &wanted.test) {
        (Test::Compare(op, v), Test::Exists) => !compare_matches_missing(*op, v),
        (Test::In(set), Test::Exists) => !set.has_null,
        (
            Test::Exists
            | Test::Regex(_)
            | Test::Type(_)
            | Test::ElemMatchObject(_)
            | Test::ElemMatchValue(_),
            Test::Exists,
        ) => true,
        (Test::In(set), Test::Compare(op, limit)) if set.patterns.is_empty() => {
            set.values.iter().all(|v| comparison_implies(Comparison::Eq, v, *op, limit))
        }
        (Test::In(a), Test::In(b)) if a.patterns.is_empty() && a.collation == b.collation => {
            let within = |v: &Operand| {
                b.values.binary_search_by(|w| b.collation.compare(w.value(), v.value())).is_ok()
            };
            a.values.iter().all(within)
        }
        (Test::In(a), Test::In(b)) if a.patterns.is_empty() => {
            a.values.iter().all(|v| b.values.iter().any(|w| order(v, w) == Some(Ordering::Equal)))
        }
        (Test::Compare(Comparison::Eq, v), Test::In(set)) => {
            set.values.iter().any(|w| order(v, w) == Some(Ordering::Equal))
        }
        (Test::Compare(have_op, v), Test::Compare(op, limit)) => comparison_implies(*have_op, v, *op, limit),
        (Test::Compare(Comparison::Eq, v), Test::Type(types)) => equals_are_of(v, types),
        (Test::Type(a), Test::Type(b)) => !a.any_number && a.tags.iter().all(|t| b.contains(*t)),
        _ => false,
    }
}

/// Whether all that equals a value is of one of the types: a number has equals of four types, a string may equal a symbol, and null
/// what is missing.
fn equals_are_of(v: &Operand, types: &TypeSet) -> bool {
    let all = |tags: &[u8]| tags.iter().all(|tag| types.contains(*tag));
    match v.tag {
        0x01 | 0x10 | 0x12 | 0x13 => all(&[0x01, 0x10, 0x12, 0x13]),
        0x02 | 0x0E => all(&[0x02, 0x0E]),
        0x0A => false,
        tag => types.contains(tag),
    }
}

/// The order of two operands; `None` where strings compare by two collations.
fn order(a: &Operand, b: &Operand) -> Option<Ordering> {
    match (a.string_collation(), b.string_collation()) {
        (Some(x), Some(y)) if x != y => None,
        (Some(c), _) | (None, Some(c)) => Some(c.compare(a.value(), b.value())),
        (None, None) => Some(Collation::SIMPLE.compare(a.value(), b.value())),
    }
}

fn comparison_implies(have: Comparison, v: &Operand, wanted: Comparison, limit: &Operand) -> bool {
    use Comparison::*;
    if canonical_type(v.tag) != canonical_type(limit.tag) {
        return false;
    }
    // NaN stands below all numbers in an index, but for a filter it is neither less nor greater than any value: only itself.
    if v.is_nan() || limit.is_nan() {
        let strict = |op| matches!(op, Lt | Gt);
        return v.is_nan() && limit.is_nan() && !strict(have) && !strict(wanted);
    }
    let Some(order) = order(v, limit) else { return false };
    match (have, wanted) {
        (Eq, Eq) => order == Ordering::Equal,
        (Eq, Lt) | (Lte, Lt) => order == Ordering::Less,
        (Eq | Lt | Lte, Lte) | (Lt, Lt) => order != Ordering::Greater,
        (Eq, Gt) | (Gte, Gt) => order == Ordering::Greater,
        (Eq | Gt | Gte, Gte) | (Gt, Gt) => order != Ordering::Less,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::meter::{Overseer, Oversight, QUANTUM, Slice, charge, oversee, spend, within};
    use document::{Document, Error, Result, Value, doc};
    use std::sync::Arc;

    /// The overseer of an operation whose time is over.
    struct Late;

    impl Overseer for Late {
        fn check(&self, _: &mut Slice) -> Result<()> {
            Err(Error::new(document::codes::MAX_TIME_MS_EXPIRED, "late"))
        }
    }

    /// Values that equal others of another type, or stand beside every order.
    fn odd_values() -> Vec<Value> {
        let decimal = |text: &str| Value::Decimal128(document::Decimal128::parse(text).unwrap());
        let mut out = vec![
            Value::Null,
            Value::Undefined,
            Value::MinKey,
            Value::MaxKey,
            Value::Boolean(true),
            Value::Double(f64::NAN),
            decimal("NaN"),
            Value::Double(0.0),
            Value::Double(-0.0),
            Value::Double(f64::NEG_INFINITY),
            Value::Double(f64::INFINITY),
            Value::Int32(5),
            Value::Int64(5),
            Value::Double(5.0),
            decimal("5"),
            decimal("5.5"),
            Value::Int32(7),
            Value::from("s"),
            Value::Symbol("s".into()),
            Value::from("t"),
            doc! {"b": 5}.into(),
            doc! {"b": Value::Null}.into(),
        ];
        let elements = [&out[0], &out[2], &out[5], &out[11], &out[13], &out[17], &out[20]].map(Value::clone);
        out.push(Value::Array(Vec::new()));
        out.extend(elements.iter().map(|v| Value::Array(vec![v.clone()])));
        out.push(Value::Array(elements.to_vec()));
        out.push(Value::Array(vec![Value::Array(vec![Value::Int32(5)])]));
        out
    }

    /// What may be asked of a value.
    fn conditions(values: &[Value]) -> Vec<Document> {
        let mut out = vec![doc! {"$exists": true}, doc! {"$ne": Value::Null}];
        let compared = |v: &&Value| !matches!(v, Value::Undefined);
        for v in values.iter().filter(compared) {
            out.extend(
                ["$eq", "$lt", "$lte", "$gt", "$gte"]
                    .map(|op| [(op.to_string(), v.clone())].into_iter().collect()),
            );
            out.push(doc! {"$in": [v.clone()]});
            out.push(doc! {"$in": [v.clone(), Value::Int32(7), Value::from("t")]});
        }
        let types = [-1, 1, 2, 3, 4, 6, 8, 10, 14, 16, 18, 19, 127].map(Value::Int32);
        out.extend(types.into_iter().map(|t| doc! {"$type": t}));
        out.push(doc! {"$type": "number"});
        out.push(doc! {"$type": [1, 16, 18, 19]});
        out.push(doc! {"$type": ["string", "symbol"]});
        out.push(doc! {"$type": ["number", "null"]});
        out
    }

    #[test]
    fn what_a_query_matches_is_in_every_index_that_its_filter_implies() {
        let values = odd_values();
        let mut documents: Vec<Document> = values.iter().map(|v| doc! {"a": v.clone()}).collect();
        documents.push(Document::new());
        documents.extend(values.iter().map(|v| doc! {"a": {"b": v.clone()}}));
        documents.extend(values.iter().map(|v| doc! {"a": [{"b": v.clone()}, {"c": 1}]}));
        let documents: Vec<_> = documents.iter().map(Document::to_doc_buf).collect();
        let conditions = conditions(&values);
        for path in ["a", "a.b"] {
            let filters: Vec<_> = conditions
                .iter()
                .map(|c| [(path.to_string(), Value::from(c.clone()))].into_iter().collect::<Document>())
                .map(|filter| {
                    let m = Matcher::parse(filter.to_doc_buf().doc(), &QueryContext::at(0)).unwrap();
                    let matched: Vec<bool> = documents.iter().map(|d| m.matches(d.doc()).unwrap()).collect();
                    (filter, m, matched)
                })
                .collect();
            let mut implied = 0;
            for (query, have, matched) in &filters {
                for (filter, wanted, held) in &filters {
                    if !implies_node(have.root(), wanted.root()) {
                        continue;
                    }
                    implied += 1;
                    let outcomes = documents.iter().zip(matched.iter().zip(held));
                    let lost: Vec<Document> = outcomes
                        .filter(|(_, (m, h))| **m && !**h)
                        .map(|(d, _)| d.doc().to_document())
                        .collect();
                    assert!(lost.is_empty(), "{query:?} matches {lost:?}, not in the index of {filter:?}");
                }
            }
            assert!(implied > 2000, "{implied}");
        }
    }

    #[test]
    fn a_query_out_of_time_is_implied_as_before_and_ends_at_its_next_work() {
        let filter = doc! {"a": {"$gt": 3}}.to_doc_buf();
        let query = doc! {"a": {"$gt": 5}}.to_doc_buf();
        let query = Matcher::parse(query.doc(), &QueryContext::at(0)).unwrap();
        let next = within(&mut Oversight::default(), || {
            oversee(Arc::new(Late));
            charge(2 * QUANTUM as usize);
            assert!(implies(&query, filter.doc(), &Collation::SIMPLE));
            spend(1)
        });
        assert_eq!(next.unwrap_err().code, document::codes::MAX_TIME_MS_EXPIRED);
    }

    #[test]
    fn a_number_of_any_type_implies_numbers_only() {
        let implied = |query: Document, filter: Document| {
            let query = Matcher::parse(query.to_doc_buf().doc(), &QueryContext::at(0)).unwrap();
            implies(&query, filter.to_doc_buf().doc(), &Collation::SIMPLE)
        };
        assert!(implied(doc! {"a": 5}, doc! {"a": {"$type": "number"}}));
        assert!(implied(doc! {"a": 5}, doc! {"a": {"$type": ["int", "long", "double", "decimal"]}}));
        assert!(!implied(doc! {"a": 5}, doc! {"a": {"$type": ["int", "long", "double"]}}));
        assert!(implied(doc! {"a": true}, doc! {"a": {"$type": "bool"}}));
        assert!(implied(doc! {"a": {"$lte": f64::NAN}}, doc! {"a": {"$lte": f64::NAN}}));
        assert!(!implied(doc! {"a": f64::NAN}, doc! {"a": {"$lte": 5}}));
    }
}
