//! Reads the requested size of generated images, and recognizes images in an answer.

use crate::failure::Failure;
use crate::images::PriceGrade;
use crate::json::{Cursor, Members, Raw, Shape, Spelling, SyntaxError};

/// The name of the smallest image size, and its alias (`docs/api/generate-content.md`).
pub(super) const SMALLEST: &str = "0.5K";
const SMALLEST_ALIAS: &str = "512";

/// Whether a size is the alias of the smallest one.
pub(super) fn is_smallest(size: &Raw<'_>) -> bool {
    let text = size.string();
    text.is_some_and(|text| text.is(SMALLEST_ALIAS)) || size.text() == SMALLEST_ALIAS
}

/// The price grade of the requested images. The upstream refuses unknown sizes.
pub fn requested_grade(body: &[u8]) -> Result<PriceGrade, Failure> {
    let members = Members::read(body, Spelling::SnakeOrCamel)?;
    let mut grade = PriceGrade::default();
    if let Some(config) = members.object("generation_config")? {
        let config = Members::nested(config, "generationConfig.", Spelling::SnakeOrCamel)?;
        if let Some(image) = config.object("image_config")? {
            let path = "generationConfig.imageConfig.";
            let image = Members::nested(image, path, Spelling::SnakeOrCamel)?;
            let size = image.get("image_size")?;
            let text = size.and_then(|size| size.string()?.decode().ok());
            grade.size = match size.filter(is_smallest) {
                Some(_) => Some(SMALLEST.into()),
                None => text.map(|text| text.into_owned().into_boxed_str()),
            };
        }
    }
    Ok(grade)
}

/// Whether inline data or a referenced file is an image.
pub(super) fn is_picture(data: Raw<'_>) -> bool {
    let (mut is_picture, mut is_empty) = (true, true);
    // The caller has validated the JSON.
    let read = Cursor::new(data.text()).object(|cursor, name| {
        let value = cursor.value()?;
        if name.is("mimeType") {
            let mime = value.string().and_then(|mime| mime.decode().ok());
            let mime = mime.unwrap_or_default();
            is_picture = mime
                .get(..6)
                .is_some_and(|it| it.eq_ignore_ascii_case("image/"));
        } else if name.is("data") || name.is("fileUri") {
            is_empty = value.shape() != Shape::String || value.is_empty();
        }
        Ok::<(), SyntaxError>(())
    });
    read.is_ok() && is_picture && !is_empty
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_known_by_their_type_and_bytes() {
        for (data, expected) in [
            (r#"{"mimeType":"image/png","data":"QQ=="}"#, true),
            (r#"{"data":"QQ==","mimeType":"image\/jpeg"}"#, true),
            (r#"{"data":"QQ==","mimeType":"IMAGE/jpeg"}"#, true),
            (r#"{"data":"QQ=="}"#, true),
            (r#"{"mimeType":"image/png","fileUri":"https://a"}"#, true),
            (r#"{"mimeType":"image/png","data":""}"#, false),
            (r#"{"mimeType":"image/png"}"#, false),
            (r#"{"mimeType":"audio/wav","data":"QQ=="}"#, false),
        ] {
            let raw = Cursor::new(data).value().unwrap();
            assert_eq!(is_picture(raw), expected, "{data}");
        }
    }

    #[test]
    fn either_spelling_asks_for_the_same_size() {
        for body in [
            r#"{"generationConfig":{"imageConfig":{"imageSize":"4K"}}}"#,
            r#"{"generation_config":{"image_config":{"image_size":"4\u004b"}}}"#,
        ] {
            let grade = requested_grade(body.as_bytes()).unwrap();
            assert_eq!(grade.size.as_deref(), Some("4K"));
        }
        for alias in ["512", r#""512""#] {
            let body =
                format!(r#"{{"generationConfig":{{"imageConfig":{{"imageSize":{alias}}}}}}}"#);
            let grade = requested_grade(body.as_bytes()).unwrap();
            assert_eq!(grade.size.as_deref(), Some("0.5K"));
        }
        assert_eq!(requested_grade(b"{}"), Ok(PriceGrade::default()));
    }
}
