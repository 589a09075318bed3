//! `tollgate token …`: manages the tokens of the admin API and the console.

use clap::Subcommand;
use store::{Role, Store, TokenCursor, TokenId, TokenQuery, TokenRow};

use super::context::{Context, actor};
use super::terminal::{CommandError, Side, Table, time};
use crate::operations::views::{NewTokenView, TokenView};
use crate::operations::{sign_in, tokens};

#[derive(Debug, Subcommand)]
pub(super) enum Token {
    /// Create a token. Its secret is shown once and never again.
    Create {
        /// A name for people, which the audit shows.
        name: String,
        /// The rights of the token: viewer reads, support also tops up, operator also changes wallets and keys, owner
        /// changes everything.
        #[arg(long, value_parser = role)]
        role: Role,
    },
    /// List tokens, including revoked ones.
    List,
    /// Revoke a token and end its sessions.
    Revoke {
        /// The id of the token.
        id: TokenId,
    },
    /// Create a link that signs somebody in to the console, once and within ten minutes.
    SignInLink {
        /// The role of the session.
        #[arg(long, default_value = "owner", value_parser = role)]
        role: Role,
        /// The URL at which the browser reaches the admin listener; the configured address if left out.
        #[arg(long, value_name = "URL")]
        url: Option<String>,
    },
}

fn role(text: &str) -> Result<Role, String> {
    text.parse()
        .map_err(|error: store::UnknownRole| error.to_string())
}

pub(super) async fn run(command: Token, context: &mut Context) -> Result<(), CommandError> {
    let (store, actor) = (context.store()?, actor());
    match command {
        Token::Create { name, role } => {
            let (row, secret) = tokens::create(&store, name, role, &actor).await?;
            show_secret_once(row, secret, context)
        }
        Token::List => {
            let rows = all(&store).await?;
            show(rows, context)
        }
        Token::Revoke { id } => {
            let row = store.revoke_token(id, &actor).await?;
            if context.json {
                return context.out.json(&TokenView::from(row));
            }
            context.out.table(&table(&[row]))
        }
        Token::SignInLink { role, url } => {
            let url = match url {
                Some(url) => url,
                None => context.console_url()?,
            };
            let code = sign_in::create_code(&store, role, &actor).await?;
            let link = sign_in::link(&url, &code);
            if context.json {
                return context
                    .out
                    .json(&serde_json::json!({ "link": link, "code": code }));
            }
            context.out.line(&link)?;
            context.out.line("It works once, within ten minutes.")
        }
    }
}

async fn all(store: &Store) -> Result<Vec<TokenRow>, CommandError> {
    let mut rows: Vec<TokenRow> = Vec::new();
    loop {
        let after: Option<TokenCursor> = rows.last().map(|row| row.cursor);
        let page = store.tokens(TokenQuery { after, limit: 0 }).await?;
        if page.is_empty() {
            return Ok(rows);
        }
        rows.extend(page);
    }
}

fn show(rows: Vec<TokenRow>, context: &mut Context) -> Result<(), CommandError> {
    if context.json {
        let rows: Vec<_> = rows.into_iter().map(TokenView::from).collect();
        return context.out.json(&rows);
    }
    context.out.table(&table(&rows))
}

fn show_secret_once(
    row: TokenRow,
    secret: String,
    context: &mut Context,
) -> Result<(), CommandError> {
    if context.json {
        let token = TokenView::from(row);
        return context.out.json(&NewTokenView { token, secret });
    }
    context.out.table(&table(&[row]))?;
    context.out.line("")?;
    context.out.line(format!("secret: {secret}"))?;
    context
        .out
        .line("It is not stored and will not be shown again.")
}

fn table(rows: &[TokenRow]) -> Table {
    let mut table = Table::new([
        ("ID", Side::Left),
        ("NAME", Side::Left),
        ("ROLE", Side::Left),
        ("PREFIX", Side::Left),
        ("CREATED", Side::Left),
        ("LAST USED", Side::Left),
        ("REVOKED", Side::Left),
    ]);
    for row in rows {
        let shown = |time: Option<ledger::UnixMs>| time.map_or_else(|| "-".to_owned(), time::show);
        table.row([
            row.id.to_string(),
            row.name.clone(),
            row.role.to_string(),
            row.shown_prefix.clone(),
            time::show(row.created_at),
            shown(row.last_used_at),
            shown(row.revoked_at),
        ]);
    }
    table
}
