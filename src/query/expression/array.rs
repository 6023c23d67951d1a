//! Arrays.

use super::comparison::order;
use super::number::exact_i32;
use super::{Arg, Eval, Expression, FieldPath, Node, Variables, Vars, is_nullish, parse, type_name};
use crate::merge_sort::merge_sort;
use document::{Collation, Doc, Document, Error, Result, Value, bail, meter};
use std::sync::Arc;

fn null() -> Eval {
    Ok(Some(Value::Null))
}
fn array(v: Vec<Value>) -> Eval {
    Ok(Some(Value::Array(v)))
}
fn int(i: i64) -> Eval {
    Ok(Some(document::number::int_or_long(i)))
}
fn show(v: &Arg) -> String {
    v.as_ref().map_or("missing".to_string(), parse::show)
}
fn is_number(v: &Arg) -> bool {
    v.as_ref().is_some_and(Value::is_number)
}

pub fn array_elem_at(args: &mut [Arg]) -> Eval {
    if is_nullish(&args[0]) || is_nullish(&args[1]) {
        return null();
    }
    let Some(Value::Array(items)) = &mut args[0] else {
        bail!(28689, "$arrayElemAt's first argument must be an array, but is {}", type_name(&args[0]));
    };
    let items = std::mem::take(items);
    if !is_number(&args[1]) {
        bail!(
            28690,
            "$arrayElemAt's second argument must be a numeric value, but is {}",
            type_name(&args[1])
        );
    }
    let Some(at) = args[1].as_ref().and_then(exact_i32) else {
        let shown = show(&args[1]);
        bail!(28691, "$arrayElemAt's second argument must be representable as a 32-bit integer: {shown}");
    };
    Ok(pick(items, at as i64))
}

/// The element at a position; negative positions count from the end. Missing outside.
fn pick(mut items: Vec<Value>, at: i64) -> Arg {
    let at = if at < 0 { at + items.len() as i64 } else { at };
    let at = usize::try_from(at).ok().filter(|i| *i < items.len())?;
    Some(items.swap_remove(at))
}

fn end_of(name: &str, a: &mut Arg, at: i64) -> Eval {
    match a.take() {
        v if is_nullish(&v) => null(),
        Some(Value::Array(items)) => Ok(pick(items, at)),
        v => bail!(28689, "{name}'s argument must be an array, but is {}", type_name(&v)),
    }
}
pub fn first(args: &mut [Arg]) -> Eval {
    end_of("$first", &mut args[0], 0)
}
pub fn last(args: &mut [Arg]) -> Eval {
    end_of("$last", &mut args[0], -1)
}

pub fn concat_arrays(args: &mut [Arg]) -> Eval {
    let mut out = Vec::new();
    for a in args.iter_mut() {
        match a.take() {
            v if is_nullish(&v) => return null(),
            Some(Value::Array(items)) => out.extend(items),
            v => bail!(28664, "$concatArrays only supports arrays, not {}", type_name(&v)),
        }
    }
    array(out)
}

pub fn size(args: &mut [Arg]) -> Eval {
    match &args[0] {
        Some(Value::Array(items)) => int(items.len() as i64),
        v => bail!(17124, "The argument to $size must be an array, but was of type: {}", type_name(v)),
    }
}

pub fn is_array(args: &mut [Arg]) -> Eval {
    Ok(Some(Value::Boolean(matches!(args[0], Some(Value::Array(_))))))
}

pub fn contains(args: &mut [Arg], c: &Collation) -> Eval {
    let Some(Value::Array(items)) = &args[1] else {
        bail!(40081, "$in requires an array as a second argument, found: {}", type_name(&args[1]));
    };
    let Some(wanted) = &args[0] else { return Ok(Some(Value::Boolean(false))) };
    Ok(Some(Value::Boolean(position(items, wanted, c)?.is_some())))
}

/// Elements of an array that are compared in the time of a unit of work, when they are scalars.
const COMPARED_A_UNIT: usize = 8;

/// Where `items` first has a value that equals `wanted`.
fn position(items: &[Value], wanted: &Value, c: &Collation) -> Result<Option<usize>> {
    for (i, run) in items.chunks(COMPARED_A_UNIT).enumerate() {
        meter::spend(1)?;
        if let Some(at) = run.iter().position(|v| c.values_equal(v, wanted)) {
            return Ok(Some(i * COMPARED_A_UNIT + at));
        }
    }
    Ok(None)
}

pub fn index_of_array(args: &mut [Arg], c: &Collation) -> Eval {
    if is_nullish(&args[0]) {
        return null();
    }
    let Some(Value::Array(items)) = &args[0] else {
        bail!(40090, "$indexOfArray requires an array as a first argument, found: {}", type_name(&args[0]));
    };
    let bound = |at: usize, which: &str, default: usize| -> Result<usize> {
        let Some(v) = args.get(at) else { return Ok(default) };
        let Some(i) = v.as_ref().and_then(exact_i32) else {
            bail!(
                9711600,
                "$indexOfArray requires an integral {which} index, found a value of type: {}, with value: {}",
                type_name(v),
                show(v)
            );
        };
        if i < 0 {
            bail!(9711601, "$indexOfArray requires a nonnegative {which} index, found: {i}");
        }
        Ok(i as usize)
    };
    let start = bound(2, "starting", 0)?;
    let end = bound(3, "ending", items.len())?.min(items.len());
    let (Some(within), Some(wanted)) = (items.get(start..end), &args[1]) else { return int(-1) };
    int(position(within, wanted, c)?.map_or(-1, |at| (start + at) as i64))
}

pub fn reverse_array(args: &mut [Arg]) -> Eval {
    match args[0].take() {
        v if is_nullish(&v) => null(),
        Some(Value::Array(mut items)) => {
            items.reverse();
            array(items)
        }
        v => {
            bail!(34435, "The argument to $reverseArray must be an array, but was of type: {}", type_name(&v))
        }
    }
}

pub fn range(args: &mut [Arg]) -> Eval {
    let part = |v: &Arg, what: &str, kind: i32, fit: i32| -> Result<i64> {
        if !is_number(v) {
            let text =
                format!("$range requires a numeric {what} value, found value of type: {}", type_name(v));
            return Err(Error::new(kind, text));
        }
        let text = || {
            format!(
                "$range requires a {what} value that can be represented as a 32-bit integer, found value: {}",
                show(v)
            )
        };
        v.as_ref().and_then(exact_i32).map(i64::from).ok_or_else(|| Error::new(fit, text()))
    };
    let start = part(&args[0], "starting", 34443, 34444)?;
    let end = part(&args[1], "ending", 34445, 34446)?;
    let step = match args.get(2) {
        None => 1,
        Some(v) => part(v, "step", 34447, 34448)?,
    };
    if step == 0 {
        bail!(34449, "$range requires a non-zero step value");
    }
    let count = if (end - start).signum() == step.signum() {
        ((end - start).abs() + step.abs() - 1) / step.abs()
    } else {
        0
    };
    let bytes = count.saturating_mul(16);
    if bytes > super::super::pipeline::MEMORY_LIMIT as i64 {
        bail!(
            EXCEEDED_MEMORY_LIMIT,
            "$range would use too much memory ({bytes} bytes) and cannot spill to disk. Memory limit: 104857600 bytes"
        );
    }
    meter::claim(count as usize * size_of::<Value>())?;
    array((0..count).map(|i| Value::Int32((start + i * step) as i32)).collect())
}

pub fn slice(args: &mut [Arg]) -> Eval {
    if args.iter().any(is_nullish) {
        return null();
    }
    let Some(Value::Array(items)) = &mut args[0] else {
        bail!(28724, "First argument to $slice must be an array, but is of type: {}", type_name(&args[0]));
    };
    let items = std::mem::take(items);
    let whole = |v: &Arg, which: &str, kind: i32, fit: i32| -> Result<i64> {
        if !is_number(v) {
            let text =
                format!("{which} argument to $slice must be numeric, but is of type: {}", type_name(v));
            return Err(Error::new(kind, text));
        }
        let text =
            || format!("{which} argument to $slice can't be represented as a 32-bit integer: {}", show(v));
        v.as_ref().and_then(exact_i32).map(i64::from).ok_or_else(|| Error::new(fit, text()))
    };
    let n = whole(&args[1], "Second", 28725, 28726)?;
    let length = items.len() as i64;
    let (start, count) = match args.get(2) {
        None if n < 0 => ((length + n).max(0), length),
        None => (0, n),
        Some(third) => {
            let count = whole(third, "Third", 28727, 28728)?;
            if count <= 0 {
                bail!(28729, "Third argument to $slice must be positive: {count}");
            }
            (if n < 0 { (length + n).max(0) } else { n }, count)
        }
    };
    array(items.into_iter().skip(start as usize).take(count as usize).collect())
}

#[derive(Debug)]
struct Zip {
    inputs: Vec<Expression>,
    defaults: Vec<Expression>,
    longest: bool,
}

impl Node for Zip {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for e in &self.inputs {
            match e.eval(root, vars)? {
                v if is_nullish(&v) => return null(),
                Some(Value::Array(items)) => inputs.push(items),
                v => bail!(34468, "$zip found a non-array expression in input: {}", show(&v)),
            }
        }
        let lengths = inputs.iter().map(Vec::len);
        let rows = if self.longest { lengths.max() } else { lengths.min() }.unwrap_or(0);
        let mut defaults = Vec::new();
        for e in &self.defaults {
            defaults.push(e.eval_or_null(root, vars)?);
        }
        let cell = |column: usize, row: usize| -> Result<Value> {
            meter::spend(1)?;
            let own = inputs[column].get(row).or_else(|| defaults.get(column));
            Ok(own.cloned().unwrap_or(Value::Null))
        };
        let mut out = Vec::new();
        for row in 0..rows {
            let cells: Result<Vec<Value>> = (0..inputs.len()).map(|column| cell(column, row)).collect();
            out.push(Value::Array(cells?));
        }
        array(out)
    }
    fn children(&self) -> Vec<&Expression> {
        self.inputs.iter().chain(&self.defaults).collect()
    }
    fn name(&self) -> &'static str {
        "$zip"
    }
}

pub fn zip(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else {
        bail!(34460, "$zip only supports an object as an argument, found {}", v.type_name());
    };
    let (mut inputs, mut defaults, mut longest) = (Vec::new(), Vec::new(), false);
    for (name, v) in d.iter() {
        match (name, v) {
            ("inputs", Value::Array(items)) => {
                inputs = items.iter().map(|i| parse::expression(i, vars)).collect::<Result<_>>()?;
            }
            ("inputs", v) => bail!(34461, "inputs must be an array of expressions, found {}", v.type_name()),
            ("defaults", Value::Array(items)) => {
                defaults = items.iter().map(|i| parse::expression(i, vars)).collect::<Result<_>>()?;
            }
            ("defaults", v) => {
                bail!(34462, "defaults must be an array of expressions, found {}", v.type_name())
            }
            ("useLongestLength", Value::Boolean(b)) => longest = *b,
            ("useLongestLength", v) => {
                bail!(34463, "useLongestLength must be a bool, found {}", v.type_name())
            }
            (other, _) => bail!(34464, "$zip found an unknown argument: {other}"),
        }
    }
    if inputs.is_empty() {
        bail!(34465, "$zip requires at least one input array");
    }
    if !defaults.is_empty() && !longest {
        bail!(34466, "cannot specify defaults unless useLongestLength is true");
    }
    if !defaults.is_empty() && defaults.len() != inputs.len() {
        bail!(34467, "defaults and inputs must have the same length");
    }
    Ok(Expression::Special(Arc::new(Zip { inputs, defaults, longest })))
}

#[derive(Clone, Debug)]
enum SortBy {
    Whole {
        descending: bool,
    },
    /// Paths and whether they descend.
    Fields(Vec<(FieldPath, bool)>),
}

#[derive(Debug)]
struct SortArray {
    input: Expression,
    by: SortBy,
    collation: Collation,
}

impl Node for SortArray {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let mut items = match self.input.eval(root, vars)? {
            v if is_nullish(&v) => return null(),
            Some(Value::Array(items)) => items,
            v => bail!(
                2942504,
                "The input argument to $sortArray must be an array, but was of type: {}",
                type_name(&v)
            ),
        };
        match &self.by {
            SortBy::Whole { descending } => merge_sort(&mut items, |a, b| {
                let o = self.collation.compare_values(a, b);
                if *descending { o.reverse() } else { o }
            })?,
            SortBy::Fields(paths) => merge_sort(&mut items, |a, b| compare_by(paths, a, b, &self.collation))?,
        }
        array(items)
    }
    fn children(&self) -> Vec<&Expression> {
        vec![&self.input]
    }
    fn name(&self) -> &'static str {
        "$sortArray"
    }
}

pub fn sort_array(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else {
        bail!(2942500, "$sortArray requires an object as an argument, found: {}", v.type_name());
    };
    if let Some(bad) = d.keys().find(|k| !["input", "sortBy"].contains(k)) {
        bail!(2942501, "$sortArray found an unknown argument: {bad}");
    }
    let Some(input) = d.get("input") else { bail!(2942502, "$sortArray requires 'input' to be specified") };
    let Some(by) = d.get("sortBy") else { bail!(2942503, "$sortArray requires 'sortBy' to be specified") };
    let by = sort_by(by)?;
    Ok(Expression::Special(Arc::new(SortArray {
        input: parse::expression(input, vars)?,
        by,
        collation: vars.collation().clone(),
    })))
}

fn sort_by(v: &Value) -> Result<SortBy> {
    match v {
        Value::Document(d) => sort_pattern(d).map(SortBy::Fields),
        v if v.is_number() => match exact_i32(v) {
            Some(1) => Ok(SortBy::Whole { descending: false }),
            Some(-1) => Ok(SortBy::Whole { descending: true }),
            _ => bail!(2942506, "The $sort element value must be either 1 or -1"),
        },
        v => bail!(2942507, "Illegal sort specification in $sortArray: {}", v.type_name()),
    }
}

fn sort_pattern(d: &Document) -> Result<Vec<(FieldPath, bool)>> {
    if d.is_empty() {
        bail!(2942505, "The sort pattern in $sortArray must have at least one field");
    }
    let one = |(path, v): (&str, &Value)| match exact_i32(v) {
        Some(direction @ (1 | -1)) => Ok((FieldPath::parse_lenient(path), direction < 0)),
        _ => bail!(2942505, "The sort direction in $sortArray must be either 1 or -1"),
    };
    d.iter().map(one).collect()
}

/// Arrays are compared as arrays here, unlike in `$sort`. What is missing counts as null.
fn compare_by(paths: &[(FieldPath, bool)], a: &Value, b: &Value, c: &Collation) -> std::cmp::Ordering {
    let at = |path: &FieldPath, v: &Value| Some(path.get_in_value(v).unwrap_or(Value::Null));
    for (path, descending) in paths {
        let order = order(&at(path, a), &at(path, b), c);
        if order.is_ne() {
            return if *descending { order.reverse() } else { order };
        }
    }
    std::cmp::Ordering::Equal
}

/// `$firstN`, `$lastN`, `$minN`, `$maxN` of one array.
#[derive(Debug)]
struct Several {
    name: &'static str,
    input: Expression,
    n: Expression,
    collation: Collation,
}

impl Node for Several {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let n = count_of(&self.n.eval(root, vars)?)?;
        let items = match self.input.eval(root, vars)? {
            v if is_nullish(&v) && matches!(self.name, "$minN" | "$maxN") => return null(),
            Some(Value::Array(items)) => items,
            v => bail!(5788200, "Input must be an array, but found a value of type {}", type_name(&v)),
        };
        array(match self.name {
            "$firstN" => items.into_iter().take(n).collect(),
            "$lastN" => items.split_at(items.len().saturating_sub(n)).1.to_vec(),
            name => extremes(items, n, name == "$maxN", &self.collation)?,
        })
    }
    fn children(&self) -> Vec<&Expression> {
        vec![&self.input, &self.n]
    }
    fn name(&self) -> &'static str {
        self.name
    }
}

fn extremes(mut items: Vec<Value>, n: usize, greatest: bool, c: &Collation) -> Result<Vec<Value>> {
    items.retain(|v| !matches!(v, Value::Null | Value::Undefined));
    merge_sort(&mut items, |a, b| if greatest { c.compare_values(b, a) } else { c.compare_values(a, b) })?;
    items.truncate(n);
    Ok(items)
}

/// The `n` of the operators that give several values: a positive integer.
pub fn count_of(v: &Arg) -> Result<usize> {
    if !is_number(v) {
        bail!(5787902, "Value for 'n' must be of integral type, but found {}", show(v));
    }
    let Some(n) = v.as_ref().and_then(document::number::to_i64_exact) else {
        bail!(5787903, "Value for 'n' must be of integral type, but found {}", show(v));
    };
    if n <= 0 {
        bail!(5787908, "'n' must be greater than 0, found {n}");
    }
    Ok(n as usize)
}

/// The members of `{n, input}`, the specification of `$firstN` and its like, as an expression or an accumulator.
///
/// # Errors
/// 5787801, or 5787900 of `$minN` and `$maxN`, for another type; 5787901, 5787906 and 5787907 for members too many or missing.
pub fn n_and_input<'v>(name: &str, v: &'v Value) -> Result<(&'v Value, &'v Value)> {
    let Value::Document(d) = v else {
        let code = if matches!(name, "$minN" | "$maxN") { 5787900 } else { 5787801 };
        let text = format!("specification must be an object; found {name}: {}", parse::show(v));
        return Err(document::Error::new(code, text));
    };
    if let Some(bad) = d.keys().find(|k| !["input", "n"].contains(k)) {
        bail!(5787901, "Unknown argument for 'n' operator: {bad}");
    }
    let Some(n) = d.get("n") else { bail!(5787906, "Missing value for 'n'") };
    let Some(input) = d.get("input") else { bail!(5787907, "Missing value for 'input'") };
    Ok((n, input))
}

pub fn several(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let (n, input) = n_and_input(name, v)?;
    Ok(Expression::Special(Arc::new(Several {
        name,
        input: parse::expression(input, vars)?,
        n: parse::expression(n, vars)?,
        collation: vars.collation().clone(),
    })))
}
