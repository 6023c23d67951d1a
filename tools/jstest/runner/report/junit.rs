//! The result as JUnit XML: a `testsuite` a suite or fixture, a `testcase` a test.

use super::{Result, group};
use crate::runner::outcome::{Outcome, Status};
use crate::runner::output::printable;
use std::collections::BTreeMap;
use std::fmt::Write;

pub(crate) fn render(result: &Result<'_>) -> String {
    let mut groups: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
    for outcome in result.outcomes {
        groups.entry(group(outcome)).or_default().push(outcome);
    }
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(xml, "<testsuites {}>", totals("jstest", &result.outcomes.iter().collect::<Vec<_>>()));
    for (name, outcomes) in groups {
        let _ = writeln!(xml, "  <testsuite {}>", totals(name, &outcomes));
        outcomes.iter().for_each(|outcome| case(&mut xml, outcome));
        xml.push_str("  </testsuite>\n");
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn totals(name: &str, outcomes: &[&Outcome]) -> String {
    let count = |statuses: &[Status]| outcomes.iter().filter(|o| statuses.contains(&o.status)).count();
    let seconds: f64 = outcomes.iter().map(|o| o.seconds).sum();
    format!(
        "name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{seconds:.3}\"",
        escaped(name),
        outcomes.len(),
        count(&[Status::Fail, Status::Leak, Status::MissingNative]),
        count(&[Status::Timeout, Status::Crash]),
        count(&[Status::Skip]),
    )
}

fn case(xml: &mut String, outcome: &Outcome) {
    let (name, class) = (escaped(&outcome.name), outcome.fixture.name());
    let _ =
        write!(xml, "    <testcase name=\"{name}\" classname=\"{class}\" time=\"{:.3}\"", outcome.seconds);
    let reason = escaped(&outcome.reason);
    match outcome.status {
        Status::Pass => xml.push_str("/>\n"),
        Status::Skip => _ = writeln!(xml, "><skipped message=\"{reason}\"/></testcase>"),
        status => {
            let element = if matches!(status, Status::Timeout | Status::Crash) { "error" } else { "failure" };
            let (kind, tail) = (status.name(), escaped(&outcome.tail));
            let _ = writeln!(
                xml,
                "><{element} type=\"{kind}\" message=\"{reason}\">{tail}</{element}></testcase>"
            );
        }
    }
}

/// Text for an element or an attribute, without characters that XML does not have.
fn escaped(text: &str) -> String {
    let mut xml = String::with_capacity(text.len());
    for c in printable(text.as_bytes()).chars() {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            c => xml.push(c),
        }
    }
    xml
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn text_is_fit_for_xml() {
        assert_eq!(escaped("a<b> & \"c\" \u{1}\u{ffff}"), "a&lt;b&gt; &amp; &quot;c&quot; \\u{1}\\u{ffff}");
    }
}
