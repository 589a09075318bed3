//! Code shared by Generate Content and Interactions: refusals, credentials, members, schemas, thoughts.

mod auth;
mod cache;
mod continuation;
mod error_form;
mod field;
mod image;
mod json;
mod media;
mod output;
mod refusal;
mod schema;
mod signature;
mod thinking;
mod token_counts;
mod video_file;

pub(crate) use auth::authorise;
pub(crate) use cache::cached_content;
pub(crate) use continuation::Continuation;
pub(crate) use error_form::ErrorForm;
pub(crate) use field::{Field, Spelling};
pub(crate) use image::{Picture, read_picture};
pub(crate) use json::{compact, indented, one_line};
pub(crate) use media::{linked, of_blob};
pub(crate) use output::{arguments, continue_or_stop, outputs, replace_text};
pub(crate) use refusal::{Refusal, failure_at};
pub(crate) use schema::{check_name, to_json_schema};
pub(crate) use signature::{SignatureError, Signer};
pub(crate) use thinking::effort_of_level;
pub(crate) use token_counts::TokenCounts;
pub(crate) use video_file::{File, download_uri, host_of, is_file};
