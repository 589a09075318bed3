//! `tollgate completions` and `tollgate manual`: generate files that packages install with the program.
//!
//! Both are generated from the declared arguments, as is `docs/commands.md`, so that they are never outdated.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::args::Cli;
use super::context::Context;
use super::terminal::CommandError;

#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Args)]
pub(super) struct Manual {
    /// The folder of the pages; created if it does not exist.
    folder: PathBuf,
}

pub(super) fn run_completions(
    command: &Completions,
    context: &mut Context,
) -> Result<(), CommandError> {
    let mut text = Vec::new();
    clap_complete::generate(command.shell, &mut Cli::command(), "tollgate", &mut text);
    context.out.text(&String::from_utf8_lossy(&text))
}

pub(super) fn run_manual(command: &Manual, context: &mut Context) -> Result<(), CommandError> {
    fs::create_dir_all(&command.folder)?;
    clap_mangen::generate_to(Cli::command(), &command.folder)?;
    let pages = fs::read_dir(&command.folder)?.count();
    if context.json {
        return context.out.json(&serde_json::json!({ "pages": pages }));
    }
    let folder = command.folder.display();
    context
        .out
        .line(format!("{pages} manual pages are in {folder}"))
}

/// The reference of all commands in Markdown.
#[cfg(test)]
mod reference {
    use std::fmt::Write as _;
    use std::path::Path;

    use clap::builder::StyledStr;
    use clap::{Arg, Command};

    use super::*;
    use crate::cli::terminal::time;

    const HEAD: &str = "# Commands\n\n\
        Every command of `tollgate` with its arguments. A test writes this page from the program:\n\
        `TOLLGATE_WRITE_COMMANDS=1 cargo test -p tollgate-server --lib reference`.\n\n\
        A wrong command line ends with exit code 2, a command that fails with 1. These arguments may stand \
        before or\nbehind those of any command; `--version` stands alone:\n";

    /// A text in one line of a table cell. An unescaped bar would end the cell.
    fn cell(text: &str) -> String {
        text.replace('|', "\\|").replace('\n', " ")
    }

    /// The help of an argument with a full stop at its end, which clap removes.
    fn sentence(help: Option<&StyledStr>) -> String {
        let text = help.map(StyledStr::to_string).unwrap_or_default();
        let complete = text.is_empty() || text.ends_with('.');
        text + if complete { "" } else { "." }
    }

    fn form(argument: &Arg) -> String {
        let value = || {
            let mut text = String::new();
            for name in argument.get_value_names().unwrap_or_default() {
                text.push(' ');
                text.push_str(name);
            }
            text
        };
        let short = argument.get_short().map(|it| format!("-{it}, "));
        let short = short.unwrap_or_default();
        match argument.get_long() {
            Some(long) if argument.get_action().takes_values() => {
                format!("{short}--{long}{}", value())
            }
            Some(long) => format!("{short}--{long}"),
            None => value().trim().to_owned(),
        }
    }

    fn remark(argument: &Arg) -> String {
        let mut text = sentence(argument.get_help());
        let values = argument.get_possible_values();
        if argument.get_action().takes_values() && !values.is_empty() {
            let names: Vec<_> = values
                .iter()
                .map(|it| format!("`{}`", it.get_name()))
                .collect();
            let _ = write!(text, " One of {}.", names.join(", "));
        }
        let defaults = argument.get_default_values();
        if argument.get_action().takes_values() && !defaults.is_empty() {
            let defaults: Vec<_> = defaults.iter().map(|it| it.to_string_lossy()).collect();
            let _ = write!(text, " Default: `{}`.", defaults.join(" "));
        }
        if let Some(variable) = argument.get_env() {
            let _ = write!(text, " Also `{}`.", variable.to_string_lossy());
        }
        if argument.is_required_set() {
            text.push_str(" Required.");
        }
        text
    }

    fn write_arguments<'a>(page: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
        let mut arguments = arguments.peekable();
        if arguments.peek().is_none() {
            return;
        }
        page.push_str("\n| argument | meaning |\n|---|---|\n");
        for argument in arguments {
            let (form, remark) = (cell(&form(argument)), cell(&remark(argument)));
            let _ = writeln!(page, "| `{form}` | {remark} |");
        }
    }

    /// The arguments of a command that users can write, without those that every command has.
    fn own_arguments(command: &Command) -> impl Iterator<Item = &Arg> {
        let arguments = command.get_arguments().filter(|it| !it.is_hide_set());
        arguments.filter(|it| !it.is_global_set() && it.get_id() != "help")
    }

    fn commands_below(command: &Command) -> impl Iterator<Item = &Command> {
        let below = command.get_subcommands().filter(|it| !it.is_hide_set());
        below.filter(|it| it.get_name() != "help")
    }

    fn write_command(page: &mut String, path: &str, command: &Command) {
        let _ = write!(page, "\n## `{path}`\n\n");
        if let Some(about) = command.get_about() {
            let _ = writeln!(page, "{}", sentence(Some(about)));
        }
        write_arguments(page, own_arguments(command));
        for below in commands_below(command) {
            write_command(page, &format!("{path} {}", below.get_name()), below);
        }
    }

    fn built() -> Command {
        let mut root = Cli::command();
        root.build();
        root
    }

    fn page() -> String {
        let root = built();
        let mut page = HEAD.to_owned();
        let of_all = root.get_arguments().filter(|it| !it.is_hide_set());
        write_arguments(&mut page, of_all);
        for command in commands_below(&root) {
            let path = format!("tollgate {}", command.get_name());
            write_command(&mut page, &path, command);
        }
        page
    }

    /// Collects every command and subcommand, including hidden ones.
    fn all_commands<'a>(command: &'a Command, path: &str, found: &mut Vec<(String, &'a Command)>) {
        for below in command.get_subcommands() {
            let path = format!("{path} {}", below.get_name());
            if below.get_name() != "help" {
                all_commands(below, &path, found);
                found.push((path, below));
            }
        }
    }

    #[test]
    #[cfg(feature = "sim")]
    fn nothing_is_hidden_and_everything_is_explained() {
        let root = built();
        let mut commands = vec![("tollgate".to_owned(), &root)];
        all_commands(&root, "tollgate", &mut commands);
        assert!(commands.len() > 50, "{}", commands.len());
        for (path, command) in commands {
            assert!(!command.is_hide_set(), "{path} is hidden");
            assert!(command.get_about().is_some(), "{path} says nothing");
            assert_eq!(command.get_all_aliases().count(), 0, "{path}");
            for argument in command.get_arguments() {
                let form = form(argument);
                assert!(!argument.is_hide_set(), "{path} {form} is hidden");
                assert!(
                    argument.get_help().is_some(),
                    "{path} {form} has no meaning"
                );
                assert!(argument.get_all_aliases().is_none(), "{path} {form}");
                assert!(argument.get_all_short_aliases().is_none(), "{path} {form}");
            }
        }
    }

    /// The examples are the parts of a help text that begin with a digit, without the words in parentheses.
    #[test]
    fn examples_of_times_in_help_texts_are_accepted() {
        let root = built();
        let mut commands = Vec::new();
        all_commands(&root, "tollgate", &mut commands);
        let mut found = 0;
        for (path, command) in commands {
            for argument in command.get_arguments() {
                let names = argument.get_value_names().unwrap_or_default();
                if !names.iter().any(|name| name.as_str() == "WHEN") {
                    continue;
                }
                let help = argument.get_help().unwrap().to_string();
                let help = help.replace("such as ", ", ");
                let parts = help.split([',', ';']).flat_map(|part| part.split(": "));
                for part in parts.map(str::trim) {
                    let example = part.split(" (").next().unwrap_or(part);
                    if example.starts_with(|c: char| c.is_ascii_digit()) {
                        assert!(time::parse(example).is_ok(), "{path}: {example:?}");
                        found += 1;
                    }
                }
            }
        }
        assert!(found >= 8, "{found}");
    }

    #[test]
    #[cfg(feature = "sim")]
    fn the_reference_of_commands_is_current() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
        let page = page();
        if std::env::var_os("TOLLGATE_WRITE_COMMANDS").is_some() {
            fs::write(&file, &page).unwrap();
        }
        let found = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            found == page,
            "docs/commands.md is out of date; TOLLGATE_WRITE_COMMANDS=1 writes it"
        );
    }

    #[test]
    fn every_command_has_a_manual_page_and_is_completed() {
        let folder = tempfile::tempdir().unwrap();
        clap_mangen::generate_to(Cli::command(), folder.path()).unwrap();
        for command in Cli::command()
            .get_subcommands()
            .filter(|it| !it.is_hide_set())
        {
            let name = command.get_name();
            let page = folder.path().join(format!("tollgate-{name}.1"));
            assert!(page.exists(), "{}", page.display());
        }
        for shell in [
            Shell::Bash,
            Shell::Zsh,
            Shell::Fish,
            Shell::PowerShell,
            Shell::Elvish,
        ] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "tollgate", &mut text);
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains("reprice"), "{shell}");
        }
    }
}
