//! Every expression operator the server knows, one row each: implemented, or known and not implemented. A name without
//! a row is unknown to the server too (168).

use super::*;
use document::{Collation, Result, Value};

/// An operator over evaluated arguments; it may take them out of the slice.
pub type Plain = fn(&mut [Arg]) -> Eval;
/// One that compares values.
pub type Comparing = fn(&mut [Arg], &Collation) -> Eval;

/// What a call runs.
#[derive(Clone, Debug)]
pub enum Function {
    Plain(Plain),
    Comparing(Comparing, Collation),
}

impl Function {
    pub fn call(&self, args: &mut [Arg]) -> Eval {
        match self {
            Function::Plain(f) => f(args),
            Function::Comparing(f, collation) => f(args, collation),
        }
    }
}

/// An operator that parses its own argument: (its name, the argument, the scope).
pub type Parse = fn(&'static str, &Value, &Variables) -> Result<Expression>;

pub struct Operator {
    pub name: &'static str,
    pub kind: Kind,
}

#[derive(Clone, Copy)]
pub enum Kind {
    /// With the least and greatest number of arguments.
    Function {
        min: usize,
        max: usize,
        call: Plain,
    },
    /// Its one argument is an expression, an array too.
    Single(Plain),
    /// A function that is given the collation of the scope.
    Comparing {
        min: usize,
        max: usize,
        call: Comparing,
    },
    Special(Parse),
    /// The server has it, we do not.
    NotImplemented,
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The row of an operator; `None` when the server does not know it either.
pub fn find(name: &str) -> Option<&'static Operator> {
    OPERATORS.iter().find(|o| o.name == name)
}

const ANY: usize = usize::MAX;

const fn f(name: &'static str, min: usize, max: usize, call: Plain) -> Operator {
    Operator { name, kind: Kind::Function { min, max, call } }
}
const fn c(name: &'static str, min: usize, max: usize, call: Comparing) -> Operator {
    Operator { name, kind: Kind::Comparing { min, max, call } }
}
const fn s(name: &'static str, parse: Parse) -> Operator {
    Operator { name, kind: Kind::Special(parse) }
}
const fn no(name: &'static str) -> Operator {
    Operator { name, kind: Kind::NotImplemented }
}

/// The table.
pub const OPERATORS: &[Operator] = &[
    c("$eq", 2, 2, comparison::eq),
    c("$ne", 2, 2, comparison::ne),
    c("$gt", 2, 2, comparison::gt),
    c("$gte", 2, 2, comparison::gte),
    c("$lt", 2, 2, comparison::lt),
    c("$lte", 2, 2, comparison::lte),
    c("$cmp", 2, 2, comparison::cmp),
    s("$and", boolean::and),
    s("$or", boolean::or),
    f("$not", 1, 1, boolean::not),
    s("$cond", conditional::cond),
    s("$ifNull", conditional::if_null),
    s("$switch", conditional::switch),
    s("$literal", miscellaneous::literal),
    s("$const", miscellaneous::literal),
    s("$expr", miscellaneous::expr),
    f("$add", 0, ANY, arithmetic::add),
    f("$subtract", 2, 2, arithmetic::subtract),
    f("$multiply", 0, ANY, arithmetic::multiply),
    f("$divide", 2, 2, arithmetic::divide),
    f("$mod", 2, 2, arithmetic::modulo),
    f("$abs", 1, 1, arithmetic::abs),
    f("$ceil", 1, 1, arithmetic::ceil),
    f("$floor", 1, 1, arithmetic::floor),
    f("$round", 1, 2, arithmetic::round),
    f("$trunc", 1, 2, arithmetic::trunc),
    f("$exp", 1, 1, arithmetic::exp),
    f("$ln", 1, 1, arithmetic::ln),
    f("$log", 2, 2, arithmetic::log),
    f("$log10", 1, 1, arithmetic::log10),
    f("$pow", 2, 2, arithmetic::pow),
    f("$sqrt", 1, 1, arithmetic::sqrt),
    Operator { name: "$sigmoid", kind: Kind::Single(arithmetic::sigmoid) },
    f("$bitAnd", 0, ANY, bits::and),
    f("$bitOr", 0, ANY, bits::or),
    f("$bitXor", 0, ANY, bits::xor),
    f("$bitNot", 1, 1, bits::not),
    f("$sin", 1, 1, trigonometry::sin),
    f("$cos", 1, 1, trigonometry::cos),
    f("$tan", 1, 1, trigonometry::tan),
    f("$asin", 1, 1, trigonometry::asin),
    f("$acos", 1, 1, trigonometry::acos),
    f("$atan", 1, 1, trigonometry::atan),
    f("$atan2", 2, 2, trigonometry::atan2),
    f("$sinh", 1, 1, trigonometry::sinh),
    f("$cosh", 1, 1, trigonometry::cosh),
    f("$tanh", 1, 1, trigonometry::tanh),
    f("$asinh", 1, 1, trigonometry::asinh),
    f("$acosh", 1, 1, trigonometry::acosh),
    f("$atanh", 1, 1, trigonometry::atanh),
    f("$degreesToRadians", 1, 1, trigonometry::degrees_to_radians),
    f("$radiansToDegrees", 1, 1, trigonometry::radians_to_degrees),
    f("$concat", 0, ANY, string::concat),
    f("$toLower", 1, 1, string::to_lower),
    f("$toUpper", 1, 1, string::to_upper),
    f("$strcasecmp", 2, 2, string::strcasecmp),
    f("$strLenBytes", 1, 1, string::str_len_bytes),
    f("$strLenCP", 1, 1, string::str_len_cp),
    f("$substr", 3, 3, string::substr_bytes),
    f("$substrBytes", 3, 3, string::substr_bytes),
    f("$substrCP", 3, 3, string::substr_cp),
    f("$split", 2, 2, string::split),
    f("$indexOfBytes", 2, 4, string::index_of_bytes),
    f("$indexOfCP", 2, 4, string::index_of_cp),
    s("$trim", string::trim),
    s("$ltrim", string::trim),
    s("$rtrim", string::trim),
    s("$replaceOne", string::replace),
    s("$replaceAll", string::replace),
    s("$regexMatch", regex::search),
    s("$regexFind", regex::search),
    s("$regexFindAll", regex::search),
    f("$arrayElemAt", 2, 2, array::array_elem_at),
    f("$first", 1, 1, array::first),
    f("$last", 1, 1, array::last),
    f("$concatArrays", 0, ANY, array::concat_arrays),
    f("$size", 1, 1, array::size),
    f("$isArray", 1, 1, array::is_array),
    c("$in", 2, 2, array::contains),
    c("$indexOfArray", 2, 4, array::index_of_array),
    f("$reverseArray", 1, 1, array::reverse_array),
    f("$range", 2, 3, array::range),
    f("$slice", 2, 3, array::slice),
    s("$zip", array::zip),
    s("$sortArray", array::sort_array),
    s("$firstN", array::several),
    s("$lastN", array::several),
    s("$minN", array::several),
    s("$maxN", array::several),
    s("$map", iterate::map),
    s("$filter", iterate::filter),
    s("$reduce", iterate::reduce),
    s("$let", iterate::let_in),
    c("$setUnion", 0, ANY, set::union),
    c("$setIntersection", 0, ANY, set::intersection),
    c("$setDifference", 2, 2, set::difference),
    c("$setIsSubset", 2, 2, set::is_subset),
    s("$setEquals", set::equals),
    f("$allElementsTrue", 1, 1, set::all_elements_true),
    f("$anyElementTrue", 1, 1, set::any_element_true),
    f("$mergeObjects", 0, ANY, object::merge_objects),
    f("$objectToArray", 1, 1, object::object_to_array),
    f("$arrayToObject", 1, 1, object::array_to_object),
    s("$getField", object::get_field),
    s("$setField", object::set_field),
    s("$unsetField", object::set_field),
    f("$sum", 0, ANY, statistics::sum),
    f("$avg", 0, ANY, statistics::avg),
    c("$min", 0, ANY, statistics::min),
    c("$max", 0, ANY, statistics::max),
    f("$stdDevPop", 0, ANY, statistics::std_dev_pop),
    f("$stdDevSamp", 0, ANY, statistics::std_dev_samp),
    s("$median", statistics::percentile),
    s("$percentile", statistics::percentile),
    s("$convert", convert::convert),
    s("$toBool", convert::to_type),
    s("$toInt", convert::to_type),
    s("$toLong", convert::to_type),
    s("$toDouble", convert::to_type),
    s("$toDecimal", convert::to_type),
    s("$toDate", convert::to_type),
    s("$toObjectId", convert::to_type),
    s("$toString", convert::to_type),
    s("$toUUID", convert::to_type),
    f("$type", 1, 1, miscellaneous::type_of),
    f("$isNumber", 1, 1, miscellaneous::is_number),
    s("$year", date::part),
    s("$month", date::part),
    s("$dayOfMonth", date::part),
    s("$dayOfWeek", date::part),
    s("$dayOfYear", date::part),
    s("$hour", date::part),
    s("$minute", date::part),
    s("$second", date::part),
    s("$millisecond", date::part),
    s("$week", date::part),
    s("$isoWeek", date::part),
    s("$isoWeekYear", date::part),
    s("$isoDayOfWeek", date::part),
    s("$dateToString", date::to_string),
    s("$dateFromString", date::from_string),
    s("$dateToParts", date::to_parts),
    s("$dateFromParts", date::from_parts),
    s("$dateAdd", date::add),
    s("$dateSubtract", date::add),
    s("$dateDiff", date::diff),
    s("$dateTrunc", date::trunc),
    f("$tsSecond", 1, 1, miscellaneous::ts_second),
    f("$tsIncrement", 1, 1, miscellaneous::ts_increment),
    s("$rand", miscellaneous::rand),
    s("$sampleRate", miscellaneous::sample_rate),
    s("$meta", miscellaneous::meta),
    f("$toHashedIndexKey", 1, 1, miscellaneous::to_hashed_index_key),
    f("$binarySize", 1, 1, miscellaneous::binary_size),
    f("$bsonSize", 1, 1, miscellaneous::bson_size),
    s("$function", script::function),
    s(crate::pipeline::sort_key::OPERATOR, miscellaneous::key_of_sort),
    s("$_internalJsEmit", script::emit),
    s("$_internalJsCall", script::call),
    no("$accumulator"),
    no("$encStrContains"),
    no("$encStrEndsWith"),
    no("$encStrNormalizedEq"),
    no("$encStrStartsWith"),
    no("$createObjectId"),
    no("$top"),
    no("$topN"),
    no("$bottom"),
    no("$bottomN"),
];
