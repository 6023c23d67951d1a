//! The `let` of a command: variables that its filters, pipelines and updates see.

use crate::expression::parse::check_variable_name;
use crate::expression::{Expression, Variables, Vars};
use document::{Doc, Document, Result, Value, bail};

/// The variables of the command's `let`, evaluated in the order given: an expression sees those before it. Undefined
/// stands for a missing value, as [`Vars::with_values`] takes it.
///
/// # Errors
/// FailedToParse (9) for a name that no variable may have, 4738901 for one of the system's, 4890500 for a field path.
pub fn evaluate(body: Doc<'_>, now_ms: i64) -> Result<Document> {
    let mut out = Document::new();
    let Some(variables) = body.get_document("let") else { return Ok(out) };
    let (mut names, mut values) = (Variables::new().timeless(true), Vars::new(now_ms));
    for e in variables.iter() {
        let name = e.name();
        if matches!(name, "NOW" | "CLUSTER_TIME") {
            bail!(4738901, "Attempted to override the system variable {name} with a 'let' variable");
        }
        check_variable_name(name, true)?;
        let expression = Expression::parse(&e.value().to_value(), &names)?;
        if expression.reads_fields() {
            bail!(
                4890500,
                "Command let Expression tried to access a field,which is not allowed. Use of field paths is restricted \
                 to within the query"
            );
        }
        let value = expression.eval(Doc::empty(), &mut values)?;
        names.push(name);
        values.push(value.clone());
        out.push(name, value.unwrap_or(Value::Undefined));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    fn evaluated(variables: Document) -> Result<Document> {
        evaluate(doc! { "find": "c", "let": variables }.to_doc_buf().doc(), 0)
    }

    #[test]
    fn a_variable_sees_those_before_it() {
        let sum = evaluated(doc! { "a": 1, "b": { "$add": ["$$a", 1] } }).expect("evaluates");
        assert_eq!(sum.get_i64("b"), Some(2));
        let early = evaluated(doc! { "b": "$$a", "a": 1 }).expect_err("not yet there");
        assert_eq!(early.code, 17276);
    }

    /// With a copy of all names for each of them it took minutes.
    #[test]
    fn variables_may_be_many() {
        let mut many: Document = (0..100_000).map(|i| (format!("v{i}"), Value::Int32(i))).collect();
        many.push("sum", doc! { "$add": ["$$v1", "$$v99999"] });
        assert_eq!(evaluated(many).expect("evaluates").get_i64("sum"), Some(100_000));
    }

    #[test]
    fn a_variable_may_be_missing() {
        let missing = evaluated(doc! { "a": "$$REMOVE", "b": { "$type": "$$a" } }).expect("evaluates");
        assert_eq!(missing.get("a"), Some(&Value::Undefined));
        assert_eq!(missing.get_str("b"), Some("missing"));
    }

    #[test]
    fn names_of_the_system_and_field_paths_are_refused() {
        assert_eq!(evaluated(doc! { "NOW": 1 }).expect_err("the system's").code, 4738901);
        assert_eq!(evaluated(doc! { "a": "$x" }).expect_err("a field").code, 4890500);
        assert_eq!(evaluated(doc! { "a!": 1 }).expect_err("no name").code, 9);
    }
}
