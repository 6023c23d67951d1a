//! `$bucketAuto`: buckets of roughly equal size, with bounds from the values or from a preferred-number series.

use crate::accumulator::{self, Accumulator};
use crate::expression::{Expression, Vars, parse::show};
use crate::pipeline::account::{Kind, Use};
use crate::pipeline::spill::{Merge, Sorter};
use crate::pipeline::stage::checked_size;
use crate::pipeline::{Batch, Context, Flow, Parsed, Plan, Run, Stage, group::check_output_name, parse::one};
use document::{Collation, Doc, DocBuf, DocWriter, Document, Result, Value, bail, doc, number};

#[derive(Clone, Debug)]
struct BucketAuto {
    by: Expression,
    buckets: usize,
    output: Vec<(String, accumulator::Parsed)>,
    granularity: Option<String>,
}

struct Running {
    plan: BucketAuto,
    vars: Vars,
    /// Documents with their keys, `{k, d}`, by key.
    sorter: Sorter,
    rows: usize,
    collation: Collation,
    dividing: Option<Dividing>,
}

/// The rows being cut into buckets.
struct Dividing {
    rows: Merge,
    left: usize,
    /// Rows in a bucket.
    size: usize,
    begun: usize,
    /// The bucket before: it ends where the next begins.
    before: Option<Bucket>,
}

struct Bucket {
    least: Value,
    greatest: Value,
    states: Vec<Box<dyn Accumulator>>,
}

impl Plan for BucketAuto {
    fn start(&self, run: &Run) -> Result<Box<dyn Stage>> {
        let sorter = Sorter::new(run, Kind::BucketAuto, run.limits.bucket_auto, None);
        let vars = run.vars.clone();
        Ok(Box::new(Running {
            plan: self.clone(),
            vars,
            sorter,
            rows: 0,
            collation: run.collation.clone(),
            dividing: None,
        }))
    }
}

impl Stage for Running {
    fn push(&mut self, d: DocBuf, _: &mut Batch) -> Result<Flow> {
        let key = self.plan.by.eval_or_null(d.doc(), &mut self.vars)?;
        if self.plan.granularity.is_some() {
            check_granular(&key)?;
        }
        let row = DocWriter::build(|w| {
            key.write(w, "k");
            w.document("d", d.doc());
        });
        let mut order = Vec::new();
        self.collation.append_value_key(&mut order, &key, false);
        self.sorter.push(order, row.into_bytes())?;
        self.rows += 1;
        if self.sorter.is_over() {
            bail!(
                QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                "Exceeded memory limit for $bucketAuto, but didn't allow external spilling; pass allowDiskUse:true to opt in"
            );
        }
        Ok(Flow::Continue)
    }
    fn end(&mut self, out: &mut Batch) -> Result<Flow> {
        let mut dividing = match self.dividing.take() {
            Some(dividing) => dividing,
            None => Dividing {
                rows: self.sorter.finish()?,
                left: self.rows,
                size: ((self.rows as f64 / self.plan.buckets as f64).round() as usize).max(1),
                begun: 0,
                before: None,
            },
        };
        while dividing.left > 0 {
            let bucket = self.bucket(&mut dividing)?;
            let next = bucket.least.clone();
            if let Some(before) = dividing.before.replace(bucket) {
                out.push(self.plan.document(Bucket { greatest: next, ..before })?)?;
            }
            if out.is_full() {
                self.dividing = Some(dividing);
                return Ok(Flow::More);
            }
        }
        // The last one includes its end.
        if let Some(last) = dividing.before {
            out.push(self.plan.document(last)?)?;
        }
        Ok(Flow::Continue)
    }
    fn use_of_memory(&self) -> Option<Use> {
        Some(self.sorter.used())
    }
}

impl Running {
    /// Takes a row into the bucket and returns its key.
    fn take(&mut self, from: &mut Dividing, states: &mut [Box<dyn Accumulator>]) -> Result<Value> {
        let Some(entry) = from.rows.next() else {
            from.left = 0;
            return Ok(Value::Null);
        };
        from.left -= 1;
        let row = DocBuf::from_validated(entry?.1);
        let d = row.doc().get_document("d").unwrap_or(Doc::empty());
        for ((_, parsed), state) in self.plan.output.iter().zip(states) {
            state.add(parsed.eval(d, &mut self.vars)?)?;
        }
        Ok(key_of(row.doc()))
    }

    /// The next bucket; equal keys stay together.
    fn bucket(&mut self, from: &mut Dividing) -> Result<Bucket> {
        let last = from.begun + 1 == self.plan.buckets;
        from.begun += 1;
        let least = from.rows.peek().map_or(Value::Null, |(_, row)| key_of(Doc::from_validated(row)));
        let (series, collation) = (self.plan.granularity.clone(), self.collation.clone());
        let least = match (&series, &from.before) {
            (None, _) => least,
            (Some(_), Some(before)) => before.greatest.clone(),
            (Some(series), None) => round(&least, series, false),
        };
        let mut states = Vec::with_capacity(self.plan.output.len());
        for (_, parsed) in &self.plan.output {
            states.push(parsed.start(&least, &mut self.vars)?);
        }
        let mut wanted = if last { usize::MAX } else { from.size };
        let mut greatest = Value::Null;
        while from.left > 0 && (wanted > 0 || next_is(from, |next| collation.values_equal(next, &greatest))) {
            greatest = self.take(from, &mut states)?;
            wanted = wanted.saturating_sub(1);
        }
        if let Some(series) = &series {
            greatest = round(&greatest, series, true);
            while next_is(from, |next| collation.compare_values(next, &greatest).is_lt()) {
                self.take(from, &mut states)?;
            }
        }
        Ok(Bucket { least, greatest, states })
    }
}

fn key_of(row: Doc<'_>) -> Value {
    row.get("k").map_or(Value::Null, |v| v.to_value())
}

/// Whether the key of the row that comes next is so.
fn next_is(from: &Dividing, test: impl FnOnce(&Value) -> bool) -> bool {
    from.rows.peek().is_some_and(|(_, row)| test(&key_of(Doc::from_validated(row))))
}

impl BucketAuto {
    fn document(&self, mut bucket: Bucket) -> Result<DocBuf> {
        let mut result = doc! {"_id": (doc! {"min": (bucket.least), "max": (bucket.greatest)})};
        for ((field, _), state) in self.output.iter().zip(&mut bucket.states) {
            state.settle(false)?;
            result.push(field.as_str(), state.finish());
        }
        checked_size(result.to_doc_buf())
    }
}

fn check_granular(key: &Value) -> Result<()> {
    let Some(d) = number::as_f64(key) else {
        bail!(
            40258,
            "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a value with type: {}",
            key.type_name()
        );
    };
    if d.is_nan() {
        bail!(40259, "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN");
    }
    if d < 0.0 {
        bail!(
            40260,
            "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a negative number"
        );
    }
    Ok(())
}

/// The preferred numbers of one decade, by series.
fn series(name: &str) -> Option<Vec<f64>> {
    Some(match name {
        "R5" => vec![10.0, 16.0, 25.0, 40.0, 63.0],
        "R10" => vec![100.0, 125.0, 160.0, 200.0, 250.0, 315.0, 400.0, 500.0, 630.0, 800.0],
        "R20" => vec![
            100.0, 112.0, 125.0, 140.0, 160.0, 180.0, 200.0, 224.0, 250.0, 280.0, 315.0, 355.0, 400.0, 450.0,
            500.0, 560.0, 630.0, 710.0, 800.0, 900.0,
        ],
        "R40" => vec![
            100.0, 106.0, 112.0, 118.0, 125.0, 132.0, 140.0, 150.0, 160.0, 170.0, 180.0, 190.0, 200.0, 212.0,
            224.0, 236.0, 250.0, 265.0, 280.0, 300.0, 315.0, 335.0, 355.0, 375.0, 400.0, 425.0, 450.0, 475.0,
            500.0, 530.0, 560.0, 600.0, 630.0, 670.0, 710.0, 750.0, 800.0, 850.0, 900.0, 950.0,
        ],
        "R80" => vec![
            103.0, 109.0, 115.0, 122.0, 128.0, 136.0, 145.0, 155.0, 165.0, 175.0, 185.0, 195.0, 206.0, 218.0,
            230.0, 243.0, 258.0, 272.0, 290.0, 307.0, 325.0, 345.0, 365.0, 387.0, 412.0, 437.0, 462.0, 487.0,
            515.0, 545.0, 575.0, 615.0, 650.0, 690.0, 730.0, 775.0, 825.0, 875.0, 925.0, 975.0,
        ],
        "1-2-5" => vec![10.0, 20.0, 50.0],
        "E6" => vec![10.0, 15.0, 22.0, 33.0, 47.0, 68.0],
        "E12" => vec![10.0, 12.0, 15.0, 18.0, 22.0, 27.0, 33.0, 39.0, 47.0, 56.0, 68.0, 82.0],
        "E24" => vec![
            10.0, 11.0, 12.0, 13.0, 15.0, 16.0, 18.0, 20.0, 22.0, 24.0, 27.0, 30.0, 33.0, 36.0, 39.0, 43.0,
            47.0, 51.0, 56.0, 62.0, 68.0, 75.0, 82.0, 91.0,
        ],
        "E48" => e_series(48),
        "E96" => e_series(96),
        "E192" => e_series(192),
        "POWERSOF2" => Vec::new(),
        _ => return None,
    })
}

/// The three-digit E series are the rounded powers of the n-th root of ten.
fn e_series(n: usize) -> Vec<f64> {
    let exact = |i: usize| (100.0 * 10f64.powf(i as f64 / n as f64)).round();
    // 919 is 920 in E192, the one value that was standardised otherwise.
    (0..n).map(exact).map(|v| if n == 192 && v == 919.0 { 920.0 } else { v }).collect()
}

/// The next preferred number above (`up`) or below a value, strictly.
fn round(v: &Value, name: &str, up: bool) -> Value {
    let x = number::as_f64(v).unwrap_or(0.0);
    if x == 0.0 {
        return v.clone();
    }
    if name == "POWERSOF2" {
        let e = x.log2();
        let e = if up { e.floor() + 1.0 } else { e.ceil() - 1.0 };
        let bound = 2f64.powf(e);
        return match (v, number::to_i64_exact(&Value::Double(bound))) {
            (Value::Int32(_) | Value::Int64(_), Some(whole)) => number::int_or_long(whole),
            _ => like(bound, v),
        };
    }
    let Some(series) = series(name) else { return v.clone() };
    // The decade is kept as a power of ten, so that small bounds come out of a division and print short.
    let mut power = 0i32;
    let scaled = |s: f64, power: i32| if power < 0 { s / 10f64.powi(-power) } else { s * 10f64.powi(power) };
    while x >= scaled(series[0] * 10.0, power) {
        power += 1;
    }
    while x < scaled(series[0], power) {
        power -= 1;
    }
    let found = if up {
        let above = series.iter().map(|s| scaled(*s, power)).find(|s| *s > x);
        above.unwrap_or_else(|| scaled(series[0], power + 1))
    } else {
        let below = series.iter().rev().map(|s| scaled(*s, power)).find(|s| *s < x);
        below.unwrap_or_else(|| scaled(series[series.len() - 1], power - 1))
    };
    like(found, v)
}

/// A rounded bound is a double, or a decimal when the value is one.
fn like(bound: f64, model: &Value) -> Value {
    match model {
        Value::Decimal128(_) => {
            number::to_decimal(&Value::Double(bound)).map_or(Value::Double(bound), Value::Decimal128)
        }
        _ => Value::Double(bound),
    }
}

pub fn parse(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    let Value::Document(d) = v else {
        bail!(40240, "The argument to $bucketAuto must be an object, but found type: {}.", v.type_name());
    };
    let (mut by, mut buckets, mut output, mut granularity) = (None, None, None, None);
    for (option, v) in d.iter() {
        match option {
            "groupBy" => {
                if !matches!(v, Value::Document(_)) && !v.as_str().is_some_and(|s| s.starts_with('$')) {
                    bail!(
                        40239,
                        "The $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an expression object, but found: {}.",
                        show(v)
                    );
                }
                by = Some(Expression::parse(v, &ctx.scope())?);
            }
            "buckets" => buckets = Some(count_of(v)?),
            "output" => match v {
                Value::Document(o) => output = Some(parse_output(o, ctx)?),
                v => bail!(
                    40244,
                    "The $bucketAuto 'output' field must be an object, but found type: {}.",
                    v.type_name()
                ),
            },
            "granularity" => match v {
                Value::String(s) if series(s).is_some() => granularity = Some(s.clone()),
                Value::String(s) => bail!(40257, "Unknown rounding granularity '{s}'"),
                v => bail!(
                    40261,
                    "The $bucketAuto 'granularity' field must be a string, but found type: {}.",
                    v.type_name()
                ),
            },
            other => bail!(40245, "Unrecognized option to $bucketAuto: {other}."),
        }
    }
    let (Some(by), Some(buckets)) = (by, buckets) else {
        bail!(40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified.");
    };
    let output = match output {
        Some(o) if !o.is_empty() => o,
        _ => parse_output(&doc! {"count": {"$sum": 1}}, ctx)?,
    };
    one(name, v, BucketAuto { by, buckets, output, granularity })
}

fn count_of(v: &Value) -> Result<usize> {
    if !v.is_number() {
        bail!(
            40241,
            "The $bucketAuto 'buckets' field must be a numeric value, but found type: {}.",
            v.type_name()
        );
    }
    let Some(n) = crate::expression::number::exact_i32(v) else {
        bail!(
            40242,
            "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found {}.",
            show(v)
        );
    };
    if n <= 0 {
        bail!(40243, "The $bucketAuto 'buckets' field must be greater than 0, but found: {n}.");
    }
    Ok(n as usize)
}

fn parse_output(o: &Document, ctx: &Context) -> Result<Vec<(String, accumulator::Parsed)>> {
    let mut out = Vec::new();
    for (field, v) in o.iter() {
        check_output_name(field)?;
        out.push((field.to_string(), accumulator::parse(field, v, &ctx.scope())?));
    }
    Ok(out)
}
