//! Finds the name of the operating system user who runs a command.

use std::os::unix::fs::MetadataExt as _;

/// The user's name: from the login variables, or else from the list of accounts, or else the user id. Services and
/// containers often have no login.
pub(super) fn name() -> String {
    let set = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    let login = set("USER").or_else(|| set("LOGNAME"));
    login.or_else(name_by_number).unwrap_or_else(unknown)
}

fn name_by_number() -> Option<String> {
    // The owner of `/proc/self` is the user who runs this process.
    let uid = std::fs::metadata("/proc/self").ok()?.uid();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    Some(name_of(uid, &accounts))
}

/// The name of a user id in the list of accounts.
fn name_of(uid: u32, accounts: &str) -> String {
    let name = accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let number: u32 = fields.nth(1)?.parse().ok()?;
        (number == uid).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| format!("uid:{uid}"))
}

fn unknown() -> String {
    "unknown".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_name_of_its_account() {
        let accounts =
            "root:x:0:0:root:/root:/bin/bash\n\n:x:5::\nodd\ntollgate:x:998:998::/:/sbin/nologin\n";
        for (uid, name) in [(0, "root"), (998, "tollgate"), (5, "uid:5"), (7, "uid:7")] {
            assert_eq!(name_of(uid, accounts), name);
        }
        assert_eq!(name_of(7, ""), "uid:7");
    }
}
