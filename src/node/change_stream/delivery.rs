//! What happens to an event on its way to the client: the place where the stream resumes, the user's stages, the checks
//! that it can be resumed again, and the end of the stream. A router's merged stream goes through the same.

use super::event::{Event, Watch, invalidate};
use document::{DocBuf, Document, Result, bail};
use query::change_stream::split::split;
use query::change_stream::{Start, Token};
use query::pipeline::{Execution, Parsed, Pipeline, PipelineHost, Run};
use std::collections::VecDeque;

/// The largest document of a reply: the largest of a client, and room for the event around it.
const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024 + 16 * 1024;

/// A document for the client, and the token to resume behind it.
pub struct Delivered {
    pub doc: DocBuf,
    pub token: String,
}

pub struct Delivery {
    watch: Watch,
    stages: Option<Execution>,
    splits: bool,
    resume: Option<Resume>,
    /// A router does all of this with what is passed on to it.
    passes_on: bool,
    /// The collection whose invalidation was passed: its drops on other shards are passed too.
    passed: Option<[u8; 16]>,
    waiting: VecDeque<Delivered>,
    /// The promise of the newest batch: a client that resumes there misses nothing.
    token: String,
    ended: bool,
}

/// The event to resume behind, until it is seen.
struct Resume {
    token: Token,
    order: String,
}

impl Delivery {
    /// `pipeline` begins with `$changeStream`; `first` is the token that stands for the stream's beginning.
    pub fn new(watch: Watch, pipeline: &Pipeline, run: Run, first: &Token) -> Result<Delivery> {
        let rest: Vec<Parsed> = pipeline.stages.iter().skip(1).cloned().collect();
        let splits = rest.last().is_some_and(|s| s.name == "$changeStreamSplitLargeEvent");
        let stages = match rest.is_empty() {
            true => None,
            false => Some(Execution::new(&Pipeline { stages: rest }, run)?),
        };
        let resume = match &watch.spec.start {
            Start::After { token, .. } if token.is_event => {
                Some(Resume { order: token.whole().order(), token: token.clone() })
            }
            _ => None,
        };
        Ok(Delivery {
            watch,
            stages,
            splits,
            resume,
            passes_on: false,
            passed: None,
            waiting: VecDeque::new(),
            token: first.data(),
            ended: false,
        })
    }
    pub fn set_passes_on(&mut self) {
        self.passes_on = true;
    }
    pub fn set_images_since(&mut self, wall: i64) {
        self.watch.images_since = wall;
    }
    /// Takes an event that a router will look at; it comes in fragments where it is too large for a reply.
    pub fn pass_on(&mut self, event: Event) -> Result<()> {
        if let Some(missing) = event.missing
            && self.resume.as_ref().is_none_or(|r| event.token.order() > r.order)
        {
            return Err(missing);
        }
        let token = event.token.data();
        for doc in split(event.doc)? {
            self.waiting.push_back(Delivered { doc, token: token.clone() });
        }
        Ok(())
    }
    pub fn watch(&self) -> &Watch {
        &self.watch
    }
    /// Nothing more will come.
    pub fn ended(&self) -> bool {
        self.ended && self.waiting.is_empty()
    }
    /// The stream has been invalidated: no more events are to be given to it.
    pub fn is_closed(&self) -> bool {
        self.ended
    }
    /// `postBatchResumeToken`.
    pub fn token(&self) -> Document {
        document::doc! { "_data": self.token.as_str() }
    }
    pub fn front(&self) -> Option<&DocBuf> {
        self.waiting.front().map(|d| &d.doc)
    }
    /// The front was handed out.
    pub fn pop(&mut self) {
        if let Some(d) = self.waiting.pop_front() {
            self.token = d.token;
        }
    }
    /// Everything before `token` has been seen and handed out.
    pub fn promise(&mut self, token: &str) {
        let resumed = self.resume.is_none() || self.passes_on;
        if self.waiting.is_empty() && !self.ended && resumed && *token > *self.token {
            self.token = token.to_string();
        }
    }

    /// Takes the next event of the log in; what comes of it waits at [`Delivery::front`].
    ///
    /// # Errors
    /// ChangeStreamFatalError (280) when the event to resume behind is not there or a stage has changed an `_id`, what
    /// the stages answer, BSONObjectTooLarge (10334).
    pub async fn take(&mut self, event: Event, host: &dyn PipelineHost) -> Result<()> {
        let ends = self.watch.scope.ends_with(&event.operation_type);
        if ends && self.passed.is_some() && self.passed == event.token.uuid {
            return Ok(());
        }
        let after = ends.then(|| invalidate(&event.token, event.wall));
        self.admit(event, host).await?;
        if let Some(end) = after {
            let uuid = end.token.uuid;
            match self.admit(end, host).await? {
                true => self.ended = true,
                false => self.passed = uuid,
            }
        }
        Ok(())
    }

    /// Whether the event belongs to the stream, and so was run through the stages.
    async fn admit(&mut self, event: Event, host: &dyn PipelineHost) -> Result<bool> {
        let mut beyond_fragment = None;
        if let Some(resume) = &self.resume {
            match event.token.order().cmp(&resume.order) {
                std::cmp::Ordering::Less if !resume.is_old_form_of(&event.token) => return Ok(false),
                std::cmp::Ordering::Greater if !resume.is_old_form_of(&event.token) => {
                    return Err(resume.missed());
                }
                _ => beyond_fragment = resume.token.fragment,
            }
            self.resume = None;
            if beyond_fragment.is_none() {
                return Ok(false);
            }
        }
        if let Some(missing) = event.missing {
            return Err(missing);
        }
        let token = event.token;
        let docs = match &mut self.stages {
            None => vec![event.doc],
            // One event at a time, so that what the stages give belongs to it.
            Some(stages) => stages.pass(event.doc, host).await?,
        };
        let data = token.data();
        let mut found = beyond_fragment.is_none();
        for doc in docs {
            let shown = self.checked(&doc, &token, &data)?;
            if let Some(fragment) = beyond_fragment {
                let this = shown.fragment;
                found |= this == Some(fragment);
                if this.is_none_or(|n| n <= fragment) {
                    continue;
                }
            }
            let token = if shown.fragment.is_some() { shown.data() } else { data.clone() };
            self.waiting.push_back(Delivered { doc, token });
        }
        match found {
            true => Ok(true),
            false => bail!(
                CHANGE_STREAM_FATAL_ERROR,
                "cannot resume stream; the resume token was not found. {}",
                document::shell::document(&token.to_document())
            ),
        }
    }

    /// The token in the document, which the stages must have left alone.
    fn checked(&self, doc: &DocBuf, token: &Token, data: &str) -> Result<Token> {
        let id = doc.get("_id");
        let text = id.and_then(|v| v.as_document()).and_then(|d| d.get_str("_data"));
        if text != Some(data) {
            let parsed = id.and_then(|v| v.as_document()).map(|d| Token::parse(&d.to_document()));
            match parsed {
                Some(Ok(part)) if self.splits && part.fragment.is_some() && part.whole() == *token => {
                    return Ok(part);
                }
                _ => {}
            }
            bail!(
                CHANGE_STREAM_FATAL_ERROR,
                "Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. \
                 Modifying the _id field of an event makes it impossible to resume the stream from that point. Only \
                 transformations that retain the unmodified _id field are allowed. Expected: {} but found: {}",
                document::shell::document(&document::doc! { "_id": token.to_document() }),
                match id {
                    Some(id) => document::shell::document(&document::doc! { "_id": id.to_value() }),
                    None => "{}".to_string(),
                }
            );
        }
        let size = doc.bytes().len();
        if size > EVENT_BYTES_MAX {
            return Err(document::size_refused(size));
        }
        Ok(token.clone())
    }
}

impl Resume {
    /// A token of an earlier version names its event without the type.
    fn is_old_form_of(&self, event: &Token) -> bool {
        self.token.version < event.version
            && (self.token.time, self.token.operation_index, self.token.from_invalidate)
                == (event.time, event.operation_index, event.from_invalidate)
    }
    fn missed(&self) -> document::Error {
        let shown = document::shell::document(&self.token.to_document());
        document::err!(
            CHANGE_STREAM_FATAL_ERROR,
            "cannot resume stream; the resume token was not found. {shown}"
        )
    }
}
