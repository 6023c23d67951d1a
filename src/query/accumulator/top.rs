//! `$firstN`, `$lastN`, `$minN`, `$maxN`, `$top`, `$topN`, `$bottom`, `$bottomN`.
//!
//! All keep up to n entries of (key, value), ordered by key: for the first four the key is the arrival or the value, for
//! the others the sort key of the document. Partial: an array of `[key, value]`.

use super::{Accumulator, Parsed, value_bytes};
use crate::expression::array::n_and_input;
use crate::expression::{Arg, Eval, Expression, Node, Variables, Vars, parse};
use crate::sort::SortSpec;
use document::{Binary, Collation, Doc, Result, Value, bail, number};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq)]
enum Keep {
    /// The first n of equal order: arrival for `$firstN`.
    First,
    Last,
    Least,
    Greatest,
    /// `$top(N)`: least key; `$bottom(N)`: greatest key, shown in ascending order.
    Top,
    Bottom,
}

struct Several {
    keep: Keep,
    n: usize,
    /// One value instead of an array.
    one: bool,
    /// By key, and for equal keys in the order in which they are shown.
    entries: BTreeMap<(Vec<u8>, u64), Value>,
    arrived: u64,
    bytes: usize,
    collation: Collation,
}

/// An end of the entries.
enum End {
    First,
    Last,
}

impl Several {
    /// Makes the state of a group that keeps `n` entries.
    fn starting(keep: Keep, one: bool, vars: &Variables) -> impl Fn(usize) -> Box<dyn Accumulator> + use<> {
        let collation = vars.collation().clone();
        move |n| {
            let (entries, collation) = (BTreeMap::new(), collation.clone());
            Box::new(Several { keep, n, one, entries, arrived: 0, bytes: 0, collation })
        }
    }
    fn insert(&mut self, key: Vec<u8>, v: Value) {
        self.arrived += 1;
        // Equal keys are shown in the order of arrival; the greatest values are shown from behind.
        let key = match self.keep {
            Keep::Greatest => (key, u64::MAX - self.arrived),
            _ => (key, self.arrived),
        };
        if self.entries.len() >= self.n {
            let (outdone, gone) = match self.keep {
                Keep::First | Keep::Least | Keep::Top => {
                    (self.entries.last_key_value().is_some_and(|(k, _)| key > *k), End::Last)
                }
                Keep::Last | Keep::Greatest | Keep::Bottom => {
                    (self.entries.first_key_value().is_some_and(|(k, _)| key < *k), End::First)
                }
            };
            if outdone {
                return;
            }
            self.remove(gone);
        }
        self.bytes += key.0.len() + value_bytes(&v);
        self.entries.insert(key, v);
    }
    fn remove(&mut self, end: End) {
        let gone = match end {
            End::First => self.entries.pop_first(),
            End::Last => self.entries.pop_last(),
        };
        if let Some(((key, _), v)) = gone {
            self.bytes -= key.len() + value_bytes(&v);
        }
    }
    /// The entries in the order in which they are shown; none is left.
    fn take(&mut self) -> Vec<(Vec<u8>, Value)> {
        self.bytes = 0;
        let entries = std::mem::take(&mut self.entries).into_iter().map(|((key, _), v)| (key, v));
        match self.keep {
            Keep::Greatest => entries.rev().collect(),
            _ => entries.collect(),
        }
    }
    fn shown(&self, mut values: impl Iterator<Item = Value>) -> Value {
        if self.one { values.next().unwrap_or(Value::Null) } else { Value::Array(values.collect()) }
    }
    fn key_of(&self, v: &Value) -> Vec<u8> {
        let mut key = Vec::new();
        if matches!(self.keep, Keep::Least | Keep::Greatest) {
            self.collation.append_value_key(&mut key, v, false);
        }
        key
    }
}

impl Accumulator for Several {
    fn add(&mut self, v: Arg) -> Result<()> {
        match (self.keep, v) {
            (Keep::Least | Keep::Greatest, None | Some(Value::Null | Value::Undefined)) => {}
            (Keep::Top | Keep::Bottom, Some(pair)) => self.merge(Value::Array(vec![pair]))?,
            (_, v) => {
                let v = v.unwrap_or(Value::Null);
                let key = self.key_of(&v);
                self.insert(key, v);
            }
        }
        Ok(())
    }
    fn export(&mut self) -> Value {
        let pair = |(key, v)| Value::Array(vec![Value::Binary(Binary { subtype: 0, bytes: key }), v]);
        Value::Array(self.take().into_iter().map(pair).collect())
    }
    fn merge(&mut self, partial: Value) -> Result<()> {
        let Value::Array(pairs) = partial else { return Ok(()) };
        for pair in pairs {
            if let Value::Array(parts) = pair
                && let Ok([Value::Binary(key), v]) = <[Value; 2]>::try_from(parts)
            {
                self.insert(key.bytes, v);
            }
        }
        Ok(())
    }
    fn finish(&mut self) -> Value {
        let entries = self.take();
        self.shown(entries.into_iter().map(|(_, v)| v))
    }
    fn current(&mut self) -> Value {
        match self.keep {
            Keep::Greatest => self.shown(self.entries.values().rev().cloned()),
            _ => self.shown(self.entries.values().cloned()),
        }
    }
    fn memory(&self) -> usize {
        self.bytes
    }
}

/// A positive integer `n`.
pub fn positive(name: &str, v: &Arg) -> Result<usize> {
    let _ = name;
    let shown = || v.as_ref().map_or("missing".to_string(), parse::show);
    if !v.as_ref().is_some_and(Value::is_number) {
        bail!(7548606, "Value for 'n' must be of integral type, but found {}", shown());
    }
    let Some(n) = v.as_ref().and_then(number::to_i64_exact) else {
        bail!(7548606, "Value for 'n' must be of integral type, but found {}", shown());
    };
    if n <= 0 {
        bail!(7548606, "'n' must be greater than 0, found {n}");
    }
    Ok(n as usize)
}

/// `{n, input}`.
pub fn parse_n(name: &'static str, v: &Value, vars: &Variables) -> Result<Parsed> {
    let (n, input) = n_and_input(name, v)?;
    let keep = match name {
        "$firstN" => Keep::First,
        "$lastN" => Keep::Last,
        "$minN" => Keep::Least,
        _ => Keep::Greatest,
    };
    let start = Several::starting(keep, false, vars);
    let mut parsed = Parsed::new(name, parse::expression(input, vars)?, start);
    parsed.n = Some(parse_count(name, n, vars)?);
    Ok(parsed)
}

fn parse_count(name: &str, n: &Value, vars: &Variables) -> Result<Expression> {
    let n = parse::expression(n, vars)?;
    if let Some(v) = n.as_constant() {
        positive(name, &Some(v.clone()))?;
    }
    Ok(n)
}

/// The pair `[sort key, output]` of a document.
#[derive(Debug)]
struct Keyed {
    sort: SortSpec,
    output: Expression,
}

impl Node for Keyed {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let key = Binary { subtype: 0, bytes: self.sort.key(root)? };
        let output = self.output.eval_or_null(root, vars)?;
        Ok(Some(Value::Array(vec![Value::Binary(key), output])))
    }
    fn children(&self) -> Vec<&Expression> {
        vec![&self.output]
    }
    fn reads(&self) -> Vec<String> {
        self.sort.components().iter().map(|(path, _)| path.clone()).collect()
    }
    fn is_pure(&self) -> bool {
        !self.sort.by_score()
    }
}

/// `{sortBy, output}`, and `n` for the operators that give several.
pub fn parse_top(name: &'static str, v: &Value, vars: &Variables) -> Result<Parsed> {
    let Value::Document(d) = v else {
        bail!(5788001, "specification must be an object; found {name}: {}", parse::show(v));
    };
    let several = name.ends_with('N');
    let known: &[&str] = if several { &["n", "sortBy", "output"] } else { &["sortBy", "output"] };
    if let Some(bad) = d.keys().find(|k| !known.contains(k)) {
        bail!(5788002, "Unknown argument to {name}: {bad}");
    }
    let n = match d.get("n") {
        Some(n) => Some(parse_count(name, n, vars)?),
        None if several => bail!(5788003, "Missing value for 'n'"),
        None => None,
    };
    let Some(output) = d.get("output") else { bail!(5788004, "Missing value for 'output'") };
    let Some(sort) = d.get("sortBy") else { bail!(5788005, "Missing value for 'sortBy'") };
    let Value::Document(sort) = sort else {
        bail!(
            5788604,
            "expected 'sortBy' to already be an object in the arguments to {name}, but found {}",
            sort.type_name()
        );
    };
    let keyed = Keyed {
        sort: SortSpec::parse(sort.to_doc_buf().doc())?.with_collation(vars.collation()),
        output: parse::expression(output, vars)?,
    };
    let keep = if name.starts_with("$top") { Keep::Top } else { Keep::Bottom };
    let start = Several::starting(keep, !several, vars);
    let mut parsed = Parsed::new(name, Expression::Special(Arc::new(keyed)), start);
    parsed.n = n;
    Ok(parsed)
}
