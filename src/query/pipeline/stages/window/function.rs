//! The functions of `$setWindowFields`, one row each, and the columns they compute over a partition.

use super::covariance::Covariance;
use super::frame::{self, Frame};
use super::{fill, rate};
use crate::accumulator::{self, value_bytes};
use crate::expression::{Arg, Expression, Variables, Vars, parse::show};
use crate::pipeline::Charge;
use crate::pipeline::spill::Space;
use crate::pipeline::spool::{Place, Spool};
use document::{Collation, Doc, Document, Error, Result, Value, bail, err, meter, number};

/// A complete partition, sorted.
pub struct Partition<'a> {
    pub documents: &'a mut Spool,
    /// The value of the one sort field in each document; null where it is missing, or where there is no such field.
    pub keys: Vec<Value>,
    /// Whether that field sorts the documents in descending order.
    pub descends: bool,
    /// How those values compare.
    pub collation: &'a Collation,
    /// What the stage holds.
    pub charge: &'a mut Charge,
    /// What the documents in memory take of it.
    pub documents_bytes: usize,
    /// What the values take of it that [`Partition::each`] made and that have not been released.
    pub values_bytes: usize,
    pub space: Option<&'a dyn Space>,
}

impl Partition<'_> {
    /// What `f` makes of each document. The values are charged until they are released.
    ///
    /// # Errors
    /// 292 when they exceed the limit and nothing may go to a file; those of `f` and of the space.
    pub fn each(&mut self, mut f: impl FnMut(Doc<'_>) -> Result<Arg>) -> Result<Vec<Arg>> {
        let mut made = Vec::with_capacity(self.documents.len());
        let mut place = Place::default();
        while let Some(d) = self.documents.next(&mut place)? {
            let value = f(d)?;
            self.hold(held_bytes(&value))?;
            made.push(value);
        }
        self.make_room()?;
        Ok(made)
    }
    /// Charges what is held until the values are released.
    ///
    /// # Errors
    /// 292 when it exceeds the limit and nothing may go to a file.
    pub fn hold(&mut self, bytes: usize) -> Result<()> {
        self.values_bytes += bytes;
        self.charge.add(bytes);
        match self.space.is_none() && self.charge.is_over() {
            true => Err(too_much(self.charge.bytes(), self.charge)),
            false => Ok(()),
        }
    }
    /// Moves the documents to the file when too much is held. Nobody may be reading them.
    fn make_room(&mut self) -> Result<()> {
        if self.charge.is_over()
            && self.documents_bytes > 0
            && let Some(space) = self.space
        {
            let stored = self.documents.spill(space)?;
            self.charge.spilled_part(std::mem::take(&mut self.documents_bytes), stored);
        }
        Ok(())
    }
    /// Charges the results of a field as they are made, beside the inputs that they are made of.
    fn results(&mut self, values: impl Iterator<Item = Arg>) -> Result<Vec<Arg>> {
        let mut made = Vec::with_capacity(self.documents.len());
        for value in values {
            self.hold(held_bytes(&value))?;
            self.make_room()?;
            made.push(value);
        }
        Ok(made)
    }
    /// The values that were made are not held any more.
    pub fn release_values(&mut self) {
        self.charge.subtract(std::mem::take(&mut self.values_bytes));
    }
}

/// What a value takes in memory.
pub fn held_bytes(v: &Arg) -> usize {
    v.as_ref().map_or(size_of::<Arg>(), value_bytes)
}

pub fn too_much(bytes: usize, charge: &Charge) -> Error {
    err!(
        QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
        "Exceeded memory limit for $setWindowFields: a partition holds {bytes} bytes, but {} are allowed; pass allowDiskUse:true to opt in to external spilling",
        charge.limit()
    )
}

/// One output field.
#[derive(Clone, Debug)]
pub struct Output {
    function: Function,
}

#[derive(Clone, Debug)]
enum Function {
    Accumulate(accumulator::Parsed, Frame),
    Covariance { x: Expression, y: Expression, sample: bool, frame: Frame },
    Rank(Rank),
    Shift { output: Expression, by: i64, default: Value },
    MovingAverage { input: Expression, alpha: Value },
    CarryForward(Expression),
    LinearFill(Expression),
    Rate(rate::Rate, Frame),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rank {
    /// Ties share a rank and leave a gap.
    WithGaps,
    Dense,
    /// The position; ties do not share it.
    Number,
}

/// What a row's parser is given.
struct Call<'a> {
    name: &'static str,
    argument: &'a Value,
    window: Option<&'a Value>,
    /// A member beside the function and its window.
    stray: Option<&'a str>,
    sort: Option<&'a Document>,
    scope: &'a Variables,
}

struct Row {
    name: &'static str,
    parse: fn(&Call<'_>) -> Result<Function>,
}

const fn row(name: &'static str, parse: fn(&Call<'_>) -> Result<Function>) -> Row {
    Row { name, parse }
}

const FUNCTIONS: &[Row] = &[
    row("$sum", accumulate),
    row("$avg", accumulate),
    row("$count", accumulate),
    row("$min", accumulate),
    row("$max", accumulate),
    row("$first", accumulate),
    row("$last", accumulate),
    row("$push", accumulate),
    row("$addToSet", accumulate),
    row("$stdDevPop", accumulate),
    row("$stdDevSamp", accumulate),
    row("$firstN", accumulate),
    row("$lastN", accumulate),
    row("$minN", accumulate),
    row("$maxN", accumulate),
    row("$top", accumulate),
    row("$bottom", accumulate),
    row("$topN", accumulate),
    row("$bottomN", accumulate),
    row("$median", accumulate),
    row("$percentile", accumulate),
    row("$concatArrays", accumulate),
    row("$setUnion", accumulate),
    row("$covariancePop", covariance),
    row("$covarianceSamp", covariance),
    row("$rank", rank),
    row("$denseRank", rank),
    row("$documentNumber", rank),
    row("$shift", shift),
    row("$expMovingAvg", moving_average),
    row("$locf", carry_forward),
    row("$linearFill", linear_fill),
    row("$derivative", derivative),
    row("$integral", integral),
];

/// The names of all window functions.
pub fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|row| row.name)
}

/// Reads `{<function>: <argument>, window: ..}` of the output field at `path`.
pub fn parse(path: &str, v: &Value, sort: Option<&Document>, scope: &Variables) -> Result<Output> {
    let Value::Document(d) = v else {
        bail!(FAILED_TO_PARSE, "The field '{path}' must be an object, found {}", v.type_name());
    };
    let named = d.iter().find(|(name, _)| name.starts_with('$'));
    let Some((name, argument)) = named else {
        bail!(FAILED_TO_PARSE, "Expected a $-prefixed window function, {}", show(v));
    };
    let Some(row) = FUNCTIONS.iter().find(|r| r.name == name) else {
        bail!(FAILED_TO_PARSE, "Unrecognized window function, {name}");
    };
    let stray = d.keys().find(|k| *k != name && *k != "window");
    let window = d.get("window");
    let call = Call { name: row.name, argument, window, stray, sort, scope };
    Ok(Output { function: (row.parse)(&call)? })
}

impl Call<'_> {
    /// The frame of a function that takes one.
    fn frame(&self) -> Result<Frame> {
        if let Some(stray) = self.stray {
            bail!(FAILED_TO_PARSE, "Window function found an unknown argument: {stray}");
        }
        self.window.map_or(Ok(Frame::WHOLE), |w| frame::parse(w, self.sort))
    }
    /// Refuses a window where the function has none.
    fn frameless(&self) -> Result<()> {
        match self.stray.or(self.window.map(|_| "window")) {
            Some(stray) => bail!(FAILED_TO_PARSE, "{} does not accept the argument '{stray}'", self.name),
            None => Ok(()),
        }
    }
    fn sort_length(&self) -> usize {
        self.sort.map_or(0, Document::len)
    }
    fn expression(&self, v: &Value) -> Result<Expression> {
        Expression::parse(v, self.scope)
    }
    /// The members of an argument object, all of which must be among `known`.
    fn object(&self, known: &[&str]) -> Result<&Document> {
        let Value::Document(d) = self.argument else {
            bail!(
                FAILED_TO_PARSE,
                "Argument to {} must be an object, but found {}",
                self.name,
                self.argument.type_name()
            );
        };
        match d.keys().find(|k| !known.contains(k)) {
            Some(bad) => bail!(FAILED_TO_PARSE, "{} got unexpected argument: {bad}", self.name),
            None => Ok(d),
        }
    }
    fn required<'d>(&self, d: &'d Document, name: &str) -> Result<&'d Value> {
        match d.get(name) {
            Some(v) => Ok(v),
            None => bail!(FAILED_TO_PARSE, "{} requires an '{name}' expression", self.name),
        }
    }
}

fn accumulate(call: &Call<'_>) -> Result<Function> {
    let frame = call.frame()?;
    let row = accumulator::table::find(call.name).and_then(|row| row.parse);
    let Some(parse) = row else { bail!(NOT_IMPLEMENTED, "{} is known but not implemented", call.name) };
    Ok(Function::Accumulate(parse(call.name, call.argument, call.scope)?, frame))
}

fn covariance(call: &Call<'_>) -> Result<Function> {
    let frame = call.frame()?;
    let sample = call.name == "$covarianceSamp";
    // Anything but two expressions gives no pair of numbers, and so null.
    let (x, y) = match call.argument {
        Value::Array(pair) if pair.len() == 2 => (call.expression(&pair[0])?, call.expression(&pair[1])?),
        other => (call.expression(other)?, Expression::Constant(Value::Null)),
    };
    Ok(Function::Covariance { x, y, sample, frame })
}

fn rank(call: &Call<'_>) -> Result<Function> {
    if call.stray.is_some() || call.window.is_some() {
        bail!(5371601, "Rank style window functions take no other arguments");
    }
    if call.sort_length() != 1 {
        bail!(
            5371602,
            "{} must be specified with a top level sortBy expression with exactly one element",
            call.name
        );
    }
    match call.argument {
        Value::Document(d) if d.is_empty() => {}
        other => bail!(
            5371603,
            "({}) must be specified with '{{}}' as the value, found {}",
            call.name,
            show(other)
        ),
    }
    Ok(Function::Rank(match call.name {
        "$rank" => Rank::WithGaps,
        "$denseRank" => Rank::Dense,
        _ => Rank::Number,
    }))
}

fn shift(call: &Call<'_>) -> Result<Function> {
    call.frameless()?;
    if call.sort.is_none() {
        bail!(FAILED_TO_PARSE, "'$shift' requires a sortBy");
    }
    let d = call.object(&["output", "by", "default"])?;
    let output = call.expression(call.required(d, "output")?)?;
    let by = call.required(d, "by")?;
    let Some(by) = by.is_number().then(|| crate::expression::number::exact_i32(by)).flatten() else {
        bail!(FAILED_TO_PARSE, "'$shift:by' field must be an integer, but found by: {}", show(by));
    };
    let default = d.get("default").map(|v| call.expression(v)).transpose()?;
    let default = match default.as_ref().map(Expression::as_constant) {
        None => Value::Null,
        Some(Some(v)) => v.clone(),
        Some(None) => bail!(FAILED_TO_PARSE, "'$shift:default' expression must yield a constant value."),
    };
    Ok(Function::Shift { output, by: i64::from(by), default })
}

fn moving_average(call: &Call<'_>) -> Result<Function> {
    call.frameless()?;
    if call.sort.is_none() {
        bail!(FAILED_TO_PARSE, "$expMovingAvg requires an explicit 'sortBy'");
    }
    let d = call.object(&["input", "N", "alpha"])?;
    let input = call.expression(call.required(d, "input")?)?;
    let alpha = match (d.get("N"), d.get("alpha")) {
        (Some(n), None) => match number::to_i64_exact(n).filter(|n| *n > 0) {
            Some(n) => Value::Double(2.0 / (n as f64 + 1.0)),
            None => bail!(
                FAILED_TO_PARSE,
                "'N' field must be an integer greater than zero, but found N: {}",
                show(n)
            ),
        },
        (None, Some(alpha)) => match number::as_f64(alpha) {
            Some(x) if x > 0.0 && x < 1.0 => alpha.clone(),
            _ => bail!(
                FAILED_TO_PARSE,
                "'alpha' must be between 0 and 1 (exclusive), found alpha: {}",
                show(alpha)
            ),
        },
        _ => bail!(
            FAILED_TO_PARSE,
            "$expMovingAvg sub object must have exactly two fields: An 'input' field, and either an 'N' field or an 'alpha' field"
        ),
    };
    Ok(Function::MovingAverage { input, alpha })
}

fn carry_forward(call: &Call<'_>) -> Result<Function> {
    call.frameless()?;
    Ok(Function::CarryForward(call.expression(call.argument)?))
}

fn linear_fill(call: &Call<'_>) -> Result<Function> {
    call.frameless()?;
    if call.sort_length() != 1 {
        bail!(
            605001,
            "$linearFill must be specified with a top level sortBy expression with exactly one element"
        );
    }
    Ok(Function::LinearFill(call.expression(call.argument)?))
}

fn derivative(call: &Call<'_>) -> Result<Function> {
    if call.window.is_none() {
        bail!(FAILED_TO_PARSE, "$derivative requires explicit window bounds");
    }
    rate_of(call, rate::Kind::Derivative)
}

fn integral(call: &Call<'_>) -> Result<Function> {
    rate_of(call, rate::Kind::Integral)
}

fn rate_of(call: &Call<'_>, kind: rate::Kind) -> Result<Function> {
    let frame = call.frame()?;
    if call.sort_length() != 1 {
        bail!(FAILED_TO_PARSE, "{} requires a non-compound sortBy", call.name);
    }
    let d = call.object(&["input", "unit"])?;
    let input = call.expression(call.required(d, "input")?)?;
    let unit = d.get("unit").map(|unit| rate::parse_unit(call.name, unit)).transpose()?;
    Ok(Function::Rate(rate::Rate { name: call.name, kind, input, unit }, frame))
}

impl Output {
    /// The value for each document of the partition.
    pub fn column(&self, p: &mut Partition<'_>, vars: &mut Vars) -> Result<Vec<Arg>> {
        match &self.function {
            Function::Accumulate(parsed, frame) => accumulated(parsed, frame, p, vars),
            Function::Covariance { x, y, sample, frame } => {
                let x = evaluated(x, p, vars)?;
                let y = evaluated(y, p, vars)?;
                over_frames(frame, p, |range, _| {
                    let mut state = Covariance::default();
                    for i in range {
                        meter::spend(8)?;
                        state.add(&x[i], &y[i]);
                    }
                    Ok(Some(state.result(*sample)))
                })
            }
            Function::Rank(kind) => ranks(*kind, p),
            Function::Shift { output, by, default } => {
                let values = evaluated(output, p, vars)?;
                let at = |i: usize| usize::try_from(i as i64 + by).ok().and_then(|i| values.get(i));
                let shifted =
                    |i| at(i).map_or(Some(default.clone()), |v| Some(v.clone().unwrap_or(Value::Null)));
                p.results((0..values.len()).map(shifted))
            }
            Function::MovingAverage { input, alpha } => Ok(averages(&evaluated(input, p, vars)?, alpha)),
            Function::CarryForward(input) => {
                let values = evaluated(input, p, vars)?;
                p.results(fill::carried(values))
            }
            Function::LinearFill(input) => fill::interpolated(evaluated(input, p, vars)?, &p.keys),
            Function::Rate(rate, frame) => {
                let values = evaluated(&rate.input, p, vars)?;
                over_frames(frame, p, |range, keys| rate.over(&values[range.clone()], &keys[range]))
            }
        }
    }
}

fn evaluated(e: &Expression, p: &mut Partition<'_>, vars: &mut Vars) -> Result<Vec<Arg>> {
    p.each(|d| e.eval(d, vars))
}

/// Bytes that a state has collected, of which a result is made with a unit of work.
const BYTES_A_UNIT: usize = 64;

/// Values of a frame that are looked at in the time of a unit of work.
const SCANNED_A_UNIT: usize = 8;

/// Calls `f` with the frame of each document; it counts its work, since a frame may be the whole partition each time.
fn over_frames(
    frame: &Frame,
    p: &mut Partition<'_>,
    mut f: impl FnMut(std::ops::Range<usize>, &[Value]) -> Result<Arg>,
) -> Result<Vec<Arg>> {
    let mut out: Vec<Arg> = Vec::with_capacity(p.documents.len());
    let mut range = 0..0;
    let mut value_units = 0;
    for at in 0..p.documents.len() {
        // A value that is the same for many documents is held by each.
        meter::spend(1 + value_units)?;
        let next = frame.at(at, &p.keys, &range)?;
        let same = at > 0 && next == range;
        let value = match same {
            false => f(next.clone(), &p.keys)?,
            true => out[at - 1].clone(),
        };
        let bytes = held_bytes(&value);
        value_units = bytes / BYTES_A_UNIT;
        p.hold(bytes)?;
        p.make_room()?;
        out.push(value);
        range = next;
    }
    Ok(out)
}

fn accumulated(
    parsed: &accumulator::Parsed,
    frame: &Frame,
    p: &mut Partition<'_>,
    vars: &mut Vars,
) -> Result<Vec<Arg>> {
    let values: Vec<Arg> = p.each(|d| parsed.eval(d, vars))?;
    let mut growing = match frame.is_left_unbounded() {
        true => Some((parsed.start(&Value::Null, vars)?, 0)),
        false => None,
    };
    over_frames(frame, p, |range, _| {
        if let Some((state, taken)) = &mut growing {
            for v in &values[*taken..range.end.max(*taken)] {
                meter::spend(2)?;
                state.add(v.clone())?;
            }
            *taken = range.end.max(*taken);
            meter::spend(1 + state.memory() / BYTES_A_UNIT)?;
            return Ok(Some(state.current()));
        }
        let mut state = parsed.start(&Value::Null, vars)?;
        if parsed.name.starts_with("$stdDev")
            && let Some(special) = special_deviation(parsed.name, &values[range.clone()])?
        {
            return Ok(Some(special));
        }
        for v in &values[range] {
            meter::spend(2)?;
            state.add(v.clone())?;
        }
        meter::spend(1 + state.memory() / BYTES_A_UNIT)?;
        Ok(Some(state.finish()))
    })
}

/// What a sliding deviation is where it is not that of the frame's values.
fn special_deviation(name: &str, values: &[Arg]) -> Result<Option<Value>> {
    meter::spend(values.len() / SCANNED_A_UNIT)?;
    if values.iter().any(is_not_finite) {
        // The real server takes leaving values out of a sliding deviation, which it cannot do with these.
        return Ok(Some(Value::Null));
    }
    // And for which one value is left deviates from nothing: by a whole zero.
    let alone = name == "$stdDevPop" && values.iter().filter(|v| is_number(v)).count() == 1;
    Ok(alone.then_some(Value::Int32(0)))
}

fn is_number(v: &Arg) -> bool {
    v.as_ref().is_some_and(Value::is_number)
}

fn is_not_finite(v: &Arg) -> bool {
    v.as_ref().and_then(number::as_f64).is_some_and(|x| !x.is_finite())
}

/// What a value is sorted by: of an array the least element, or the greatest where the order descends.
fn sorted_by<'a>(v: &'a Value, p: &Partition<'_>) -> &'a Value {
    let Value::Array(items) = v else { return v };
    let compare = |a: &&Value, b: &&Value| p.collation.compare_values(a, b);
    let end = if p.descends { items.iter().max_by(compare) } else { items.iter().min_by(compare) };
    end.unwrap_or(&Value::Undefined)
}

fn ranks(kind: Rank, p: &Partition<'_>) -> Result<Vec<Arg>> {
    let keys = &p.keys;
    let mut rank = 0i64;
    let mut out = Vec::with_capacity(keys.len());
    let mut before = None;
    for (i, key) in keys.iter().enumerate() {
        meter::spend(1 + key.as_array().map_or(0, |items| items.len()))?;
        let key = sorted_by(key, p);
        let tie = before.replace(key).is_some_and(|before| p.collation.values_equal(key, before));
        match kind {
            Rank::Number => rank = i as i64 + 1,
            Rank::WithGaps if !tie => rank = i as i64 + 1,
            Rank::Dense if !tie => rank += 1,
            _ => {}
        }
        out.push(Some(number::int_or_long(rank)));
    }
    Ok(out)
}

/// Each number weighs `alpha` against all before it; what is no number gives null and leaves the average alone.
fn averages(values: &[Arg], alpha: &Value) -> Vec<Arg> {
    let rest = number::subtract(&Value::Int32(1), alpha).unwrap_or(Value::Null);
    let mut average: Option<Value> = None;
    let step = |v: &Arg| {
        let Some(v) = v.as_ref().filter(|v| v.is_number()) else { return Some(Value::Null) };
        let next = match &average {
            None => number::multiply(v, &Value::Double(1.0)),
            Some(before) => {
                weighed(v, alpha).zip(weighed(before, &rest)).and_then(|(a, b)| number::add(&a, &b))
            }
        };
        average = next;
        average.clone()
    };
    values.iter().map(step).collect()
}

fn weighed(v: &Value, by: &Value) -> Option<Value> {
    number::multiply(v, by)
}
