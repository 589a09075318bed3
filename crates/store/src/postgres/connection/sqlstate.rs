//! Describes the server's error codes for logs and commands.

/// The meaning of a code, or of its class if the code is not listed.
pub(crate) fn in_words(code: &str) -> &'static str {
    match code {
        "25006" => {
            "the session is read-only (the server is a standby, or the role or the database is set read-only)"
        }
        "25P03" => "a transaction was idle for too long and was ended",
        "28000" => "the server does not let this role in",
        "28P01" => "the password is wrong",
        "3D000" => "there is no such database",
        "3F000" => "there is no such schema",
        "40001" | "40P01" => "another transaction was in the way",
        "42501" => "the role lacks a permission",
        "42P01" => "a table is missing",
        "53100" => "the server's disk is full",
        "53200" => "the server is out of memory",
        "53300" => "too many connections (max_connections of the server, or the limit of the role)",
        "55P03" => "a lock was held by somebody else for too long",
        "57014" => "a statement took too long and was cancelled",
        "57P01" => "the server ended the connection, or is shutting down",
        "57P02" => "the server ended the connection after a crash",
        "57P03" => "the server is starting up, recovering or shutting down",
        _ => match code.get(..2) {
            Some("08") => "the connection failed",
            Some("22") => "a value does not fit",
            Some("23") => "a stored rule is violated",
            Some("25") => "the transaction is in a wrong state",
            Some("28") => "the server does not accept the credentials",
            Some("42") => "a statement does not fit the schema, or is not permitted",
            Some("53") => "the server is short of resources",
            Some("54") => "a limit of the server is exceeded",
            Some("55") => "the server is not in the state for it",
            Some("57") => "the server was told to stop this",
            Some("58") => "the server has trouble with its system or files",
            Some("XX") => "the server has an internal fault, perhaps damaged data",
            _ => "the database refused",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_that_an_operator_can_remove_are_named() {
        for (code, word) in [
            ("25006", "read-only"),
            ("28P01", "password"),
            ("3D000", "no such database"),
            ("53100", "disk is full"),
            ("53200", "memory"),
            ("53300", "too many connections"),
            ("57P03", "starting up"),
            ("58030", "files"),
        ] {
            assert!(in_words(code).contains(word), "{code}: {}", in_words(code));
        }
    }

    #[test]
    fn a_code_without_words_of_its_own_gets_those_of_its_class() {
        assert_eq!(in_words("53999"), "the server is short of resources");
        for code in ["", "5", "ZZ999", "é9999"] {
            assert_eq!(in_words(code), "the database refused", "{code}");
        }
    }
}
