//! What the nodes of a cluster ask each other, as structs that are written and read in this one place.
//!
//! [`message!`] makes the struct, both directions, and the errors of the real server for a field that is missing (40414) or of the
//! wrong type (14). A field is optional by its type (`Option`, [`Flag`]); null counts as absent, fields that are not listed
//! are passed over, so that an older node understands a newer one.
//!
//! A command whose fields are a client's own, passed on by a router under an internal name, has its shape with the command.

macro_rules! part {
    ($(#[$doc:meta])* $part:ident {
        $($(#[$about:meta])* $field:ident $name:literal: $type:ty),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $part {
            $($(#[$about])* pub $field: $type,)*
        }
        impl $crate::messages::Field for $part {
            const TYPE: &'static str = "object";
            fn to_value(&self) -> Option<document::Value> {
                let mut d = document::Document::new();
                $($crate::messages::push(&mut d, $name, &self.$field);)*
                Some(d.into())
            }
            fn from_value(v: &document::Value) -> Option<Self> {
                let d = v.as_document()?;
                Some($part { $($field: $crate::messages::read(d, stringify!($part), $name).ok()?,)* })
            }
            #[cfg(test)]
            fn example() -> Self {
                $part { $($field: $crate::messages::Field::example(),)* }
            }
        }
    };
}

/// `message! { Name = "_command" (ns) { field "wireName": Type, .. } }`: the command's argument is the string in the field in
/// brackets; without brackets it is 1, and with `(= "step")` it is that.
macro_rules! message {
    ($(#[$doc:meta])* $message:ident = $command:literal $(($argument:ident))? $((= $constant:literal))? {
        $($(#[$about:meta])* $field:ident $name:literal: $type:ty),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $message {
            $(
                /// The command's argument.
                pub $argument: String,
            )?
            $($(#[$about])* pub $field: $type,)*
        }
        impl $crate::messages::Message for $message {
            const COMMAND: &'static str = $command;
            fn to_document(&self) -> document::Document {
                let argument = [$(document::Value::from(self.$argument.as_str()))? $(document::Value::from($constant))?];
                let argument = argument.into_iter().next();
                let mut d = document::Document::new();
                d.push($command, argument.unwrap_or(document::Value::Int32(1)));
                $($crate::messages::push(&mut d, $name, &self.$field);)*
                d
            }
            fn read(body: &document::Document) -> document::Result<Self> {
                let _ = body;
                Ok($message {
                    $($argument: $crate::messages::argument(body, $command)?,)?
                    $($field: $crate::messages::read(body, $command, $name)?,)*
                })
            }
            #[cfg(test)]
            fn example() -> Self {
                $message {
                    $($argument: stringify!($argument).to_string(),)?
                    $($field: $crate::messages::Field::example(),)*
                }
            }
        }
    };
}

pub mod balancing;
pub mod chunks;
pub mod ddl;
pub mod migration;
pub mod placement;
pub mod ranges;
pub mod resharding;
pub mod sampling;
pub mod standstill;
pub mod user_writes;

use document::{Doc, Document, ObjectId, Result, Timestamp, Value, bail, err, wrong_type};
use protocol::version::{DatabaseVersion, ShardVersion};

/// A command of one node to another.
pub trait Message: Sized {
    const COMMAND: &'static str;
    fn to_document(&self) -> Document;
    /// # Errors
    /// InvalidNamespace (73) for a bad argument, IDLFailedToParse (40414), TypeMismatch (14).
    fn read(body: &Document) -> Result<Self>;
    /// As [`Message::read`], from a command's body.
    ///
    /// # Errors
    /// The same.
    fn parse(body: Doc<'_>) -> Result<Self> {
        Self::read(&body.to_document())
    }
    /// The command, to be answered when a majority has what it wrote.
    fn with_majority(&self) -> Document {
        let mut command = self.to_document();
        command.push("writeConcern", crate::remote::majority());
        command
    }
    #[cfg(test)]
    fn example() -> Self;
}

/// The type of a field.
pub trait Field: Sized {
    /// As errors name it.
    const TYPE: &'static str;
    /// `None` where it is left out.
    fn to_value(&self) -> Option<Value>;
    /// `None` for a value of another type.
    fn from_value(v: &Value) -> Option<Self>;
    /// What its absence means; `None` where it must be there.
    fn absent() -> Option<Self> {
        None
    }
    #[cfg(test)]
    fn example() -> Self;
}

/// A boolean that is false where it is left out. Numbers count too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flag(pub bool);

fn push(d: &mut Document, name: &str, field: &impl Field) {
    if let Some(value) = field.to_value() {
        d.push(name, value);
    }
}

/// Writes a field of a state, in place of what it is there.
pub(crate) fn set(d: &mut Document, name: &str, field: &impl Field) {
    if let Some(value) = field.to_value() {
        d.insert(name, value);
    }
}

/// Reads a field of a command or of a state `of` that name.
///
/// # Errors
/// IDLFailedToParse (40414), TypeMismatch (14).
pub(crate) fn read<T: Field>(d: &Document, of: &str, name: &str) -> Result<T> {
    let Some(value) = d.get_present(name) else {
        return T::absent().ok_or_else(|| {
            err!(IDL_FAILED_TO_PARSE, "BSON field '{of}.{name}' is missing but a required field")
        });
    };
    T::from_value(value).ok_or_else(|| wrong_type(&format!("{of}.{name}"), value.type_name(), T::TYPE))
}

/// The string that is the command's argument. The command may have come under another of its names.
fn argument(body: &Document, command: &str) -> Result<String> {
    match body.first() {
        Some((_, Value::String(text))) if !text.is_empty() => Ok(text.clone()),
        _ => bail!(INVALID_NAMESPACE, "the argument of {command} must be a non-empty string"),
    }
}

macro_rules! fields {
    ($($type:ty, $name:literal, $read:expr, $write:expr, $example:expr;)+) => {$(
        impl Field for $type {
            const TYPE: &'static str = $name;
            fn to_value(&self) -> Option<Value> {
                Some($write(self))
            }
            fn from_value(v: &Value) -> Option<Self> {
                $read(v)
            }
            #[cfg(test)]
            fn example() -> Self {
                $example
            }
        }
    )+};
}

fields! {
    String, "string", |v: &Value| v.as_str().map(str::to_string), |s: &String| Value::from(s.as_str()), "text".to_string();
    bool, "bool", Value::as_bool, |b: &bool| Value::Boolean(*b), true;
    f64, "double", Value::as_f64, |n: &f64| Value::Double(*n), 0.5;
    i64, "long", Value::as_i64, |n: &i64| Value::Int64(*n), 7;
    Document, "object", |v: &Value| v.as_document().cloned(), |d: &Document| Value::Document(d.clone()), document::doc! { "x": 1 };
    ObjectId, "objectId", Value::as_object_id, |id: &ObjectId| Value::ObjectId(*id), ObjectId([3; 12]);
    Timestamp, "timestamp", Value::as_timestamp, |t: &Timestamp| Value::Timestamp(*t), Timestamp::from_u64(5);
    [u8; 16], "binData", Value::as_uuid, |id: &[u8; 16]| Value::uuid(*id), [9; 16];
    ShardVersion, "object", |v: &Value| v.as_document().and_then(ShardVersion::from_document),
        |v: &ShardVersion| Value::Document(v.to_document()), ShardVersion { epoch: ObjectId([4; 12]), timestamp: Timestamp::from_u64(8), placement: Timestamp::from_u64(9) };
    DatabaseVersion, "object", |v: &Value| v.as_document().and_then(DatabaseVersion::from_document),
        |v: &DatabaseVersion| Value::Document(v.to_document()),
        DatabaseVersion { uuid: [2; 16], timestamp: Timestamp::from_u64(6), last_mod: 1 };
}

impl Field for Flag {
    const TYPE: &'static str = "bool";
    fn to_value(&self) -> Option<Value> {
        self.0.then_some(Value::Boolean(true))
    }
    fn from_value(v: &Value) -> Option<Self> {
        (v.as_bool().is_some() || v.is_number()).then(|| Flag(v.truthy()))
    }
    fn absent() -> Option<Self> {
        Some(Flag(false))
    }
    #[cfg(test)]
    fn example() -> Self {
        Flag(true)
    }
}

impl<T: Field> Field for Option<T> {
    const TYPE: &'static str = T::TYPE;
    fn to_value(&self) -> Option<Value> {
        self.as_ref().and_then(T::to_value)
    }
    fn from_value(v: &Value) -> Option<Self> {
        T::from_value(v).map(Some)
    }
    fn absent() -> Option<Self> {
        Some(None)
    }
    #[cfg(test)]
    fn example() -> Self {
        Some(T::example())
    }
}

impl<T: Field> Field for Vec<T> {
    const TYPE: &'static str = "array";
    fn to_value(&self) -> Option<Value> {
        Some(Value::Array(self.iter().filter_map(T::to_value).collect()))
    }
    fn from_value(v: &Value) -> Option<Self> {
        v.as_array()?.iter().map(T::from_value).collect()
    }
    #[cfg(test)]
    fn example() -> Self {
        vec![T::example()]
    }
}

#[cfg(test)]
mod tests;
