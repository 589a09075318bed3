//! The page for callers: `page` serves it and its files, `html` writes it.

mod html;
mod page;

pub(super) use page::{CallersPage, asks_for_html, file};
