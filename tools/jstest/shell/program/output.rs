//! What the programs of a test have written, line by line, for `rawMongoProgramOutput`.

use parking_lot::Mutex;

/// All lines captured since the start or the last `clear`, each with its prefix (`d20020| `) and a line feed.
#[derive(Default)]
pub struct Captured {
    text: Mutex<String>,
}

impl Captured {
    pub fn append(&self, line: &str) {
        let mut text = self.text.lock();
        text.push_str(line);
        text.push('\n');
    }
    pub fn clear(&self) {
        self.text.lock().clear();
    }
    pub fn all(&self) -> String {
        self.text.lock().clone()
    }
    /// The lines in which `pattern` is found; `Err` is what is wrong with the pattern.
    pub fn matching(&self, pattern: &str) -> Result<String, String> {
        let regex = pcre2::bytes::RegexBuilder::new()
            .utf(true)
            .jit_if_available(true)
            .build(pattern)
            .map_err(|error| error.to_string())?;
        let text = self.text.lock();
        Ok(text
            .split_inclusive('\n')
            .filter(|line| regex.is_match(line.trim_end_matches('\n').as_bytes()).unwrap_or(false))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Captured;

    #[test]
    fn pattern_selects_whole_lines() {
        let captured = Captured::default();
        captured.append("d1| {\"id\":1,\"msg\":\"one\"}");
        captured.append("d1| {\"id\":2,\"msg\":\"two\"}");
        assert_eq!(captured.matching("\"id\":2").unwrap(), "d1| {\"id\":2,\"msg\":\"two\"}\n");
        assert_eq!(captured.matching(".*").unwrap(), captured.all());
        assert_eq!(captured.matching("one\\\"}$").unwrap().lines().count(), 1);
        assert!(captured.matching("(").is_err());
        captured.clear();
        assert_eq!(captured.all(), "");
    }
}
