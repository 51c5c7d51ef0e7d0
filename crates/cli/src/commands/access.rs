//! `auth` as the server takes it.

use std::collections::BTreeMap;
use std::fs;

use candela_server::Account;
use candela_server::AuthOptions;
use candela_server::Right;
use candela_server::Rights;
use candela_server::TenantName;

use crate::config::AccountField;
use crate::config::Settings;
use crate::errors::CliError;

/// The kinds of accounts: the key, and the field that has the secret.
const TOKENS: (&str, &str) = ("auth.tokens", "token");
const USERS: (&str, &str) = ("auth.users", "password");

/// Who may ask.
///
/// # Errors
/// When an account lacks something, or has what it does not take.
pub(crate) fn auth_options(settings: &Settings) -> Result<AuthOptions, CliError> {
    let multi_tenancy = settings.boolean("auth.multi_tenancy");
    let users = accounts(settings, USERS, |name| {
        // What a browser logs in with is the tenant, unless the configuration says otherwise.
        multi_tenancy.then(|| name.to_owned())
    })?;
    let options = AuthOptions {
        tokens: accounts(settings, TOKENS, |_| None)?,
        users,
        multi_tenancy,
        is_insecure: settings.boolean("auth.insecure"),
    };
    let checked = options.check();
    checked.map_err(|error| CliError::usage(error.to_string()))?;
    Ok(options)
}

/// The accounts below a key, by name.
fn accounts(
    settings: &Settings,
    (key, secret_field): (&str, &str),
    default_tenant: impl Fn(&str) -> Option<String>,
) -> Result<Vec<Account>, CliError> {
    let mut by_name: BTreeMap<String, BTreeMap<String, AccountField>> = BTreeMap::new();
    for (path, field) in settings.accounts(key) {
        // Names may have points in them, fields have none.
        let Some((name, field_name)) = path.rsplit_once('.').filter(|(name, _)| !name.is_empty())
        else {
            return Err(CliError::usage(format!(
                "{key}: an entry has no name; write name, {secret_field} or {secret_field}_file, and rights"
            )));
        };
        let fields = by_name.entry(name.to_owned()).or_default();
        fields.insert(field_name.to_owned(), field);
    }
    let accounts = by_name.into_iter().map(|(name, fields)| {
        let account = account(&name, fields, secret_field, default_tenant(&name));
        account.map_err(|reason| CliError::usage(format!("{key}: {name}: {reason}")))
    });
    accounts.collect()
}

fn account(
    name: &str,
    mut fields: BTreeMap<String, AccountField>,
    secret_field: &str,
    default_tenant: Option<String>,
) -> Result<Account, String> {
    let file_field = format!("{secret_field}_file");
    let mut take = |field: &str| fields.remove(field).map(|field| field.expose().to_owned());
    let secret = match (take(secret_field), take(&file_field)) {
        (Some(secret), None) => secret,
        (None, Some(path)) => secret_of_file(&path)?,
        (Some(_), Some(_)) => {
            return Err(format!(
                "{secret_field} and {file_field} are both set; drop one"
            ));
        }
        (None, None) => return Err(format!("it has neither {secret_field} nor {file_field}")),
    };
    let rights = rights_of(&take("rights").unwrap_or_default())?;
    let tenant = take("tenant").or(default_tenant);
    if let Some(unknown) = fields.keys().next() {
        return Err(format!(
            "{unknown} is not known; there are name, {secret_field}, {file_field}, rights and tenant"
        ));
    }
    let account = Account::new(name, &secret, rights).map_err(|error| error.to_string())?;
    let Some(tenant) = tenant else {
        return Ok(account);
    };
    let tenant = TenantName::new(&tenant).map_err(|error| error.to_string())?;
    Ok(account.of_tenant(tenant))
}

fn secret_of_file(path: &str) -> Result<String, String> {
    let content = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let content = content.trim();
    if content.is_empty() {
        return Err(format!("{path}: the file is empty"));
    }
    Ok(content.to_owned())
}

/// `read write`, also with `+` or commas between them.
fn rights_of(text: &str) -> Result<Rights, String> {
    let names = text.split([' ', '+', ',']).filter(|name| !name.is_empty());
    let rights = names.map(|name| {
        let right = Right::from_name(name);
        right.ok_or_else(|| {
            let known = Right::GRANTED.map(Right::name).join(", ");
            format!("{name:?} is no right; there are {known}")
        })
    });
    rights.collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::config::Inputs;
    use crate::config::load;

    fn settings(yaml: &str) -> Settings {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(yaml.as_bytes()).expect("written");
        load(&Inputs {
            config_flag: Some(file.path().to_owned()),
            ..Inputs::default()
        })
        .unwrap_or_else(|error| panic!("{yaml}: {error}"))
    }

    #[test]
    fn lists_and_tables_of_accounts_are_the_same() {
        let list = "auth:\n  tokens:\n    - name: ci.1\n      token: sesame\n      rights: [read, write]\n";
        let table = "auth:\n  tokens:\n    ci.1: {token: sesame, rights: [read, write]}\n";
        let (list, table) = (settings(list), settings(table));
        assert_eq!(
            list.get("auth.tokens").value,
            table.get("auth.tokens").value
        );
        let options = auth_options(&list).expect("valid");
        assert_eq!((options.tokens.len(), options.users.len()), (1, 0));
        let shown = format!(
            "{options:?} {:?} {}",
            list.get("auth.tokens"),
            list.get("auth.tokens").value
        );
        assert!(!shown.contains("sesame"), "{shown}");
    }

    #[test]
    fn secrets_may_be_in_files() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(b"sesame\n").expect("written");
        let yaml = |path: &str| {
            format!(
                "auth:\n  users:\n    - name: ann\n      password_file: {path}\n      rights: [admin]\n"
            )
        };
        let good = settings(&yaml(file.path().to_str().expect("a path")));
        assert_eq!(auth_options(&good).expect("valid").users.len(), 1);
        let error = auth_options(&settings(&yaml("/nonexistent"))).expect_err("no file");
        assert!(
            error.to_string().contains("auth.users: ann: /nonexistent"),
            "{error}"
        );
    }

    #[test]
    fn what_is_wrong_with_an_account_is_said() {
        let cases = [
            ("{name: a, rights: [read]}", "neither token nor token_file"),
            (
                "{name: a, token: s, token_file: f, rights: [read]}",
                "drop one",
            ),
            ("{name: a, token: s}", "no rights"),
            (
                "{name: a, token: s, rights: [rule]}",
                "\"rule\" is no right; there are read, write, admin",
            ),
            (
                "{name: a, token: s, rights: [read], tenat: x}",
                "tenat is not known",
            ),
            (
                "{name: a, token: s, rights: [read], tenant: x/y}",
                "tenant \"x/y\"",
            ),
            (
                "{name: a, token: s, rights: [read], tenant: x}",
                "auth.multi_tenancy",
            ),
        ];
        for (entry, part) in cases {
            let settings = settings(&format!("auth:\n  tokens: [{entry}]\n"));
            let error = auth_options(&settings).expect_err(entry).to_string();
            assert!(error.contains(part), "{entry}: {error}");
        }
    }

    #[test]
    fn a_user_is_its_tenant_where_there_are_several() {
        let yaml = |on: bool, name: &str| {
            format!(
                "auth:\n  multi_tenancy: {on}\n  users: {{{name}: {{password: p, rights: read}}}}\n"
            )
        };
        assert!(auth_options(&settings(&yaml(true, "team-a"))).is_ok());
        assert!(auth_options(&settings(&yaml(true, "\"ann@example\""))).is_err());
        assert!(auth_options(&settings(&yaml(false, "\"ann@example\""))).is_ok());
    }
}
