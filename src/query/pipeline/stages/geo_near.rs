//! `$geoNear`: the documents near a point, nearest first, with their distances.
//!
//! The collection's query finds and orders them: [`filter`] is the near predicate it is given, with the stage's `query`
//! beside it. What is left to the stage is to put the distance, and the place it was measured to, into each document.
//! The field to look at is `key`; whoever runs the pipeline puts in the one indexed field where it is absent.
//!
//! Over measurements of a time series no query finds them: [`MEASURE`] leaves out the documents that the predicate does, and a
//! `$sort` follows ([`crate::timeseries::near`]).

use crate::expression::{Expression, parse::show};
use crate::matcher::Matcher;
use crate::matcher::Path;
use crate::matcher::ops::geo::Near;
use crate::matcher::path::{LeafArrays, walk};
use crate::pipeline::stages::project;
use crate::pipeline::{Batch, Context, Flow, Parsed, Plan, Run, Stage, parse::one};
use document::{DocBuf, Document, Error, Result, Value, bail, doc, number};

/// The stage that measures and leaves out, and the field where it leaves the distance for the `$sort` behind it.
pub const MEASURE: &str = "$_internalComputeGeoNearDistance";
pub const MEASURED: &str = "__internal_measuredDistance";

#[derive(Clone, Debug)]
struct GeoNear {
    /// Where the places are; empty until it is known.
    path: Path,
    near: Near,
    /// What a document has to satisfy, where no query has found it.
    filter: Option<Matcher>,
    multiplier: f64,
    /// Puts the bound variables where `distanceField` and `includeLocs` say.
    shape: project::Shape,
}

struct Running {
    plan: GeoNear,
    vars: crate::expression::Vars,
}

impl Plan for GeoNear {
    fn start(&self, run: &Run) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Running { plan: self.clone(), vars: run.vars.clone() }))
    }
}

impl Stage for Running {
    fn push(&mut self, d: DocBuf, out: &mut Batch) -> Result<Flow> {
        if let Some(filter) = &self.plan.filter
            && !filter.matches(d.doc())?
        {
            return Ok(Flow::Continue);
        }
        let mut best: Option<(f64, Value)> = None;
        walk(d.doc(), &self.plan.path.parts, LeafArrays::Whole, &mut |e, _| {
            let Some(e) = e else { return Ok(false) };
            if let Some((distance, place)) = self.plan.near.nearest(e.value())?
                && best.as_ref().is_none_or(|(b, _)| distance < *b)
            {
                best = Some((distance, place.to_value()));
            }
            Ok(false)
        })?;
        let depth = self.vars.len();
        let (distance, place) = best.unzip();
        self.vars.push(distance.map(|distance| Value::Double(distance * self.plan.multiplier)));
        self.vars.push(place);
        let made = self.plan.shape.apply(d.doc(), &mut self.vars);
        self.vars.truncate(depth);
        out.push(made?)?;
        Ok(Flow::Continue)
    }
}

/// The filter that finds and orders the documents of a `$geoNear` stage with a `key`.
///
/// # Errors
/// Those of the stage's arguments.
pub fn filter(spec: &Document, ctx: &Context) -> Result<Document> {
    let key = spec.get_str("key").unwrap_or_default();
    let constant =
        |name: &str| -> Result<Option<Value>> { spec.get(name).map(|v| constant(v, ctx, 0)).transpose() };
    let point = constant("near")?.unwrap_or(Value::Null);
    let is_geojson = |d: &Document| d.get("type").is_some() || d.get("coordinates").is_some();
    let geojson = matches!(&point, Value::Document(d) if is_geojson(d));
    let spherical = geojson || spec.get("spherical").is_some_and(Value::truthy);
    let operator = if spherical { "$nearSphere" } else { "$near" };
    let mut predicate = Document::new();
    match geojson {
        true => predicate.push(operator, doc! {"$geometry": (point)}),
        false => predicate.push(operator, point),
    }
    // Beside the point, where a distance may be infinite.
    for (name, limit) in [("minDistance", "$minDistance"), ("maxDistance", "$maxDistance")] {
        constant(name)?.into_iter().for_each(|v| predicate.push(limit, v));
    }
    let mut out = Document::new();
    out.push(key, predicate);
    Ok(match spec.get_document("query").filter(|q| !q.is_empty()) {
        Some(query) => doc! {"$and": [(out), query.clone()]},
        None => out,
    })
}

/// The value of an expression that reads no document.
fn constant(v: &Value, ctx: &Context, code: i32) -> Result<Value> {
    let e = Expression::parse(v, &ctx.scope())?;
    if e.reads_fields() {
        return Err(Error::new(code, format!("$geoNear requires a constant, found {}", show(v))));
    }
    let mut vars = Run::new(ctx).vars;
    Ok(e.eval(document::Doc::empty(), &mut vars)?.unwrap_or(Value::Null))
}

/// Checks an option that says what to look for; the others say where the result goes.
fn check_option(option: &str, v: &Value, ctx: &Context) -> Result<()> {
    match option {
        "near" => match constant(v, ctx, 5860402)? {
            Value::Document(_) | Value::Array(_) => Ok(()),
            _ => bail!(5860401, "$geoNear requires near to be an array or an object, but found {}", show(v)),
        },
        "minDistance" => check_distance(option, &constant(v, ctx, 7555701)?),
        "maxDistance" => check_distance(option, &constant(v, ctx, 7555702)?),
        "distanceMultiplier" => check_distance(option, v),
        "query" => check_query(v, ctx),
        "key" => check_key(v),
        "spherical" | "uniqueDocs" => Ok(()),
        "limit" | "num" => {
            bail!(50858, "$geoNear no longer supports the '{option}' parameter. Use a $limit stage")
        }
        "start" => bail!(50856, "$geoNear no longer supports the 'start' argument."),
        other => bail!(BAD_VALUE, "Unknown argument to $geoNear: {other}"),
    }
}

fn check_distance(option: &str, v: &Value) -> Result<()> {
    match number::as_f64(v) {
        None => bail!(TYPE_MISMATCH, "{option} must be a number"),
        Some(x) if x.is_nan() || x < 0.0 => bail!(BAD_VALUE, "{option} must be nonnegative"),
        Some(_) => Ok(()),
    }
}

fn check_query(v: &Value, ctx: &Context) -> Result<()> {
    let Value::Document(query) = v else {
        bail!(TYPE_MISMATCH, "query must be an object, but found {}", v.type_name());
    };
    Matcher::parse_plain(query.to_doc_buf().doc(), &ctx.query).map(drop)
}

fn check_key(v: &Value) -> Result<()> {
    match v {
        Value::String(s) if s.is_empty() => bail!(BAD_VALUE, "$geoNear parameter 'key' must not be empty"),
        Value::String(s) => crate::expression::FieldPath::parse(s).map(drop),
        v => bail!(
            TYPE_MISMATCH,
            "$geoNear parameter 'key' must be of type string but found type: {}",
            v.type_name()
        ),
    }
}

pub fn parse(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    one(name, v, planned(v, ctx, false)?)
}

/// [`MEASURE`].
pub fn measure(name: &'static str, v: &Value, ctx: &Context) -> Result<Vec<Parsed>> {
    one(name, v, planned(v, ctx, true)?)
}

/// The stage, which leaves out what is not near where it `measures`.
fn planned(v: &Value, ctx: &Context, measures: bool) -> Result<GeoNear> {
    let Value::Document(d) = v else {
        if matches!(v, Value::Array(_)) {
            bail!(5860400, "$geoNear requires a 'near' argument");
        }
        bail!(10065, "invalid parameter: expected an object ($geoNear)");
    };
    let mut paths = Document::new();
    if measures {
        paths.push(MEASURED, "$$geoNearDistance");
    }
    let mut checked = d.clone();
    for (option, v) in d.iter() {
        match option {
            "distanceField" => paths.push(string(option, v, 16606)?, "$$geoNearDistance"),
            "includeLocs" => {
                let path = string(option, v, 16607)?;
                paths.remove(path);
                paths.push(path, "$$geoNearPlace");
            }
            _ => check_option(option, v, ctx)?,
        }
    }
    if d.get("near").is_none() {
        bail!(5860400, "$geoNear requires a 'near' argument");
    }
    if checked.get_str("key").is_none() {
        checked.push("key", "place");
    }
    let matcher = Matcher::parse(filter(&checked, ctx)?.to_doc_buf().doc(), &ctx.query)?;
    let near = near_of(&matcher)?;
    let scope = ctx.scope().bind_all(["geoNearDistance", "geoNearPlace"]);
    let shape = project::parse_add(&paths, &scope)?;
    let multiplier = d.get("distanceMultiplier").and_then(number::as_f64).unwrap_or(1.0);
    let path = Path::new(d.get_str("key").unwrap_or_default());
    Ok(GeoNear { path, near, filter: measures.then_some(matcher), multiplier, shape })
}

fn near_of(matcher: &Matcher) -> Result<Near> {
    match matcher.near() {
        Some((_, near)) => Ok(near.clone()),
        None => bail!(BAD_VALUE, "$geoNear requires a point"),
    }
}

fn string<'v>(name: &str, v: &'v Value, code: i32) -> Result<&'v str> {
    match v {
        Value::String(s) => Ok(s),
        v => {
            let found = v.type_name();
            Err(Error::new(
                code,
                format!("$geoNear requires that the '{name}' option is a String, found {found}"),
            ))
        }
    }
}
