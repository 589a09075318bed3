//! The migrations in `crates/store/migrations`, as parts of the program.
//!
//! The lists of names are written by hand. The macro of the crate `refinery` could read the folders, but Cargo would
//! then compile half of the dependencies of `refinery` twice. A test compares the lists with the folders.

use refinery_core::{Migration, Runner};

/// Lists the files of a folder of `migrations`, as `(name, SQL)`.
macro_rules! embedded_migrations {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$((
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/", $folder, "/", $name, ".sql")),
        )),+]
    };
}
pub(crate) use embedded_migrations;

/// The names of migrations, with their SQL.
pub(crate) type EmbeddedMigrations = &'static [(&'static str, &'static str)];

pub(crate) fn runner(embedded: EmbeddedMigrations) -> Runner {
    let migrations = embedded.iter().map(|(name, sql)| {
        Migration::unapplied(name, sql).expect("the name of a migration is a version and a title")
    });
    Runner::new(&migrations.collect::<Vec<_>>())
}

/// Fails if the list differs from the files of the folder.
#[cfg(test)]
pub(crate) fn assert_lists_all(embedded: EmbeddedMigrations, folder: &str) {
    let folder = format!("{}/migrations/{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut files = refinery_core::load_sql_migrations(folder).unwrap();
    files.sort();
    let listed = runner(embedded);
    let checksums = |list: &[Migration]| -> Vec<_> {
        let each = list.iter();
        each.map(|it| (it.version(), it.name().to_owned(), it.checksum()))
            .collect()
    };
    assert_eq!(checksums(listed.get_migrations()), checksums(&files));
}
