//! The setting `tls` of a listener: its certificate and key.

use http_server::TlsFiles;

use super::problem::FilePosition;
use super::section::Section;
use super::setting::{Example, Setting};
use super::value;

/// The certificate files of a listener, and the position of the setting, for problems that are found on loading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    pub(crate) files: TlsFiles,
    pub(crate) position: FilePosition,
}

/// The setting for the certificate and key of a listener. With `with_clients`, it may also have `client_ca_file`, which
/// makes the listener require client certificates.
pub(crate) fn tls(with_clients: bool, example: &'static str) -> Setting<Option<Tls>> {
    Setting {
        key: "tls",
        default: None,
        example: Example::Optional(example),
        reader: Box::new(move |section, key, _| read(section, key, with_clients)),
    }
}

fn read(section: &mut Section<'_, '_, '_>, key: &'static str, with_clients: bool) -> Option<Tls> {
    let raw = section.raw(key)?;
    let position = section.log.position(&raw.span());
    let path = section.path_of(key);
    let mut table = Section::of(raw, path, section.log);
    let folder = table.folder();
    let cert_file = table.require("cert_file", value::text);
    let key_file = table.require("key_file", value::text);
    let client_ca_file = if with_clients {
        table.value("client_ca_file", value::text)
    } else {
        None
    };
    table.end();
    Some(Tls {
        files: TlsFiles {
            certificate: folder.join(cert_file?.value),
            key: folder.join(key_file?.value),
            client_authorities: client_ca_file.map(|file| folder.join(file)),
        },
        position,
    })
}
