//! `$_internalUnpackBucket`: the measurements of a time series collection out of its buckets.

use crate::pipeline::{Batch, Context, Flow, Parsed, Plan, Run, Stage, parse::one};
use crate::timeseries::{Options, bucket};
use document::{DocBuf, Document, Result, Value, bail};

#[derive(Clone, Debug)]
struct Unpack {
    options: Options,
}

/// A bucket that is being gone through: the rows of its measurements still to come, the next one last. A measurement is
/// made when it is its turn, since all of them have the bucket's meta, which may be long.
struct Running {
    options: Options,
    bucket: DocBuf,
    pending: Vec<DocBuf>,
}

impl Plan for Unpack {
    fn start(&self, _: &Run) -> Result<Box<dyn Stage>> {
        let (bucket, pending) = (Document::new().to_doc_buf(), Vec::new());
        Ok(Box::new(Running { options: self.options.clone(), bucket, pending }))
    }
}

impl Stage for Running {
    fn push(&mut self, d: DocBuf, out: &mut Batch) -> Result<Flow> {
        self.pending = bucket::rows_by_time(d.doc(), &self.options)?;
        self.pending.reverse();
        self.bucket = d;
        self.resume(out)
    }
    fn resume(&mut self, out: &mut Batch) -> Result<Flow> {
        while let Some(row) = self.pending.pop() {
            out.push(bucket::measurement(row.doc(), self.bucket.doc(), &self.options))?;
            if out.is_full() {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Continue)
    }
}

pub fn parse(name: &'static str, v: &Value, _: &Context) -> Result<Vec<Parsed>> {
    let Some(options) = v.as_document().and_then(Options::of_document) else {
        bail!(5346500, "{name} needs an object with a timeField, got {}", v.type_name());
    };
    one(name, v, Unpack { options })
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{ObjectId, doc};

    #[test]
    fn a_long_meta_is_not_copied_for_measurements_that_nobody_takes_yet() {
        let options = Options::of_document(&doc! { "timeField": "t", "metaField": "m" }).unwrap();
        let meta = doc! { "meta": "m".repeat(1 << 20) }.to_doc_buf();
        let rows: Vec<DocBuf> = (0..500).map(|i| doc! { "t": Value::DateTime(i) }.to_doc_buf()).collect();
        let rows: Vec<_> = rows.iter().map(DocBuf::doc).collect();
        let bucket = bucket::build(ObjectId([1; 12]), meta.doc(), &rows, &options).unwrap();
        let nothing = Document::new().to_doc_buf();
        let mut stage = Running { options, bucket: nothing, pending: Vec::new() };
        let mut out = Batch::new();
        let mut taken = 0;
        let mut flow = stage.push(bucket, &mut out).unwrap();
        let left = |stage: &Running| stage.pending.iter().map(|d| d.bytes().len()).sum::<usize>();
        assert!(matches!(flow, Flow::More) && left(&stage) < 100_000, "{}", left(&stage));
        loop {
            while let Some(d) = out.pop() {
                assert_eq!(d.doc().get_str("m").map(str::len), Some(1 << 20));
                taken += 1;
            }
            if !matches!(flow, Flow::More) {
                break;
            }
            flow = stage.resume(&mut out).unwrap();
        }
        assert_eq!(taken, 500);
    }
}
