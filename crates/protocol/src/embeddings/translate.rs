//! Translates embedding requests and answers between the form of the client and that of the upstream.

use bytes::Bytes;

use super::answer::{self, ExpectedAnswer};
use super::request::{Contents, EncodedRequest, Form, Request};
use super::{content, hosted_content, instances, list};
use crate::byte_queue::ByteQueue;
use crate::canon::Dropped;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::json::patch::{self, Edit};
use crate::json::write_string;
use crate::native::{Answer, UnusableAnswer};

/// Reads a request of `/v1/embeddings`. Empty inputs, routing controls and paid tiers are refused.
/// The values of other members are left to the upstream (`docs/api/embeddings.md`).
pub fn read_request(body: &Bytes) -> Result<Request, Failure> {
    list::read(body)
}

/// Reads a request of `:embedContent` or `:batchEmbedContents`, whose path names the model.
pub fn read_named_request(body: &Bytes, model: &str, batch: bool) -> Result<Request, Failure> {
    content::read(body, model, batch)
}

impl Request {
    /// The request for an upstream of the list form.
    pub fn write_list(&self, upstream_model: &str) -> Result<EncodedRequest, Failure> {
        if self.form == Form::List {
            let mut name = Vec::new();
            write_string(&mut name, upstream_model);
            return Ok(self.patched(&name));
        }
        let (contents, dropped) = self.contents()?;
        Ok(EncodedRequest {
            form: Form::List,
            pieces: vec![list::write(&contents, upstream_model).into()],
            dropped: dropped.header(),
        })
    }

    /// The request for an upstream of the contents form.
    pub fn write_contents(&self, upstream_model: &str) -> Result<EncodedRequest, Failure> {
        if self.form != Form::List {
            let mut name = Vec::new();
            write_string(&mut name, &format!("models/{upstream_model}"));
            return Ok(self.patched(&name));
        }
        let (contents, dropped) = self.contents()?;
        let (form, body) = content::write(&contents, upstream_model);
        Ok(EncodedRequest {
            form,
            pieces: vec![body.into()],
            dropped: dropped.header(),
        })
    }

    /// The request for an upstream of the instances form.
    pub fn write_instances(&self) -> Result<EncodedRequest, Failure> {
        let (contents, dropped) = self.contents()?;
        Ok(EncodedRequest {
            form: Form::Instances,
            pieces: vec![instances::write(&contents).into()],
            dropped: dropped.header(),
        })
    }

    /// The request for a cloud vendor's model that accepts one content item per call.
    pub fn write_hosted_content(&self) -> Result<EncodedRequest, Failure> {
        let (contents, dropped) = self.contents()?;
        Ok(EncodedRequest {
            form: Form::HostedContent,
            pieces: vec![hosted_content::write(&contents)?.into()],
            dropped: dropped.header(),
        })
    }

    /// The number of inputs. Fails if one of them is not text.
    pub fn inputs(&self) -> Result<usize, Failure> {
        let (contents, _) = self.contents()?;
        Ok(contents.texts.len())
    }

    /// The part of the request that every form can express. The rest is reported as dropped.
    fn contents(&self) -> Result<(Contents, Dropped), Failure> {
        self.conversion_memory()?;
        if self.form == Form::List {
            let mut dropped = Dropped::new(Dialect::Chat);
            return Ok((list::contents(self, &mut dropped)?, dropped));
        }
        let mut dropped = Dropped::new(Dialect::Generate);
        Ok((content::contents(self, &mut dropped)?, dropped))
    }

    fn patched(&self, name: &[u8]) -> EncodedRequest {
        let spans = self.model_spans.iter();
        let edits = spans.map(|span| Edit::replace(span.clone(), name.to_vec()));
        let mut out = ByteQueue::new();
        patch::apply_to(&self.body, edits.collect(), &mut out);
        EncodedRequest {
            form: self.form,
            pieces: out.into_pieces(),
            dropped: None,
        }
    }

    /// Converts an answer in the form `upstream_form` to the form of the client.
    pub fn translate(
        &self,
        upstream_form: Form,
        body: &Bytes,
        public_model: &str,
    ) -> Result<Answer, UnusableAnswer> {
        let expected = ExpectedAnswer {
            encoding: self.encoding,
            model: public_model,
            input_tokens: self.input.tokens,
        };
        match (self.form, upstream_form) {
            (form, Form::Instances) => {
                let contents = instances::to_contents(body, form)?;
                self.translate(Form::Contents, &contents, public_model)
            }
            (Form::Contents, Form::HostedContent) => {
                let batch = hosted_content::to_batch(body)?;
                self.translate(Form::Contents, &batch, public_model)
            }
            (Form::List, Form::List) => answer::rewrite_list(body, &expected),
            (Form::List, _) => answer::list_of_contents(body, &expected),
            (form, Form::List) => answer::contents_of_list(body, form, &expected),
            (_, _) => answer::pass_contents(body, &expected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_inputs_are_written_in_another_form() {
        for (inputs, is_accepted) in [(100_000, true), (100_001, false)] {
            let list = vec!["\"a\""; inputs].join(",");
            let list = Bytes::from(format!(r#"{{"model":"m/x","input":[{list}]}}"#));
            let request = read_request(&list).unwrap();
            // The own form passes as it is.
            assert!(request.write_list("x").is_ok());
            assert_eq!(request.write_contents("x").is_ok(), is_accepted);
            assert_eq!(request.write_instances().is_ok(), is_accepted);
            assert_eq!(request.inputs().is_ok(), is_accepted);
        }
    }
}
