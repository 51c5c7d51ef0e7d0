//! The certificates of our ports, by the section of the configuration that names their files.

use std::fs;

use candela_listen::TlsOptions;

use crate::config::Settings;
use crate::errors::CliError;

/// The certificate that a section names, when there is one.
///
/// # Errors
/// When a file cannot be read, and when one of the two is missing.
pub(crate) fn tls_options(
    settings: &Settings,
    section: &'static str,
) -> Result<Option<TlsOptions>, CliError> {
    let content = |key: &str| -> Result<Option<Vec<u8>>, CliError> {
        let Some(path) = settings.text(key) else {
            return Ok(None);
        };
        let content = fs::read(path);
        let content = content.map_err(|error| CliError::usage(format!("{key} {path}: {error}")));
        content.map(Some)
    };
    let (cert_file, key_file) = (
        format!("{section}.cert_file"),
        format!("{section}.key_file"),
    );
    match (content(&cert_file)?, content(&key_file)?) {
        (None, None) => Ok(None),
        (Some(certificates), Some(key)) => Ok(Some(TlsOptions::new(section, certificates, key))),
        (Some(_), None) => Err(lonely(&cert_file, &key_file)),
        (None, Some(_)) => Err(lonely(&key_file, &cert_file)),
    }
}

fn lonely(set: &str, missing: &str) -> CliError {
    CliError::usage(format!("{set} is set and {missing} is not; TLS needs both"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::config::Inputs;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let pairs = pairs.iter();
        let inputs = Inputs {
            environment: pairs
                .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            ..Inputs::default()
        };
        crate::config::load(&inputs).expect("valid")
    }

    #[test]
    fn tls_needs_two_files() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(b"x").expect("written");
        let path = file.path().to_str().expect("a text");
        for (section, variable) in [
            ("server.tls", "CANDELA_SERVER__TLS__KEY_FILE"),
            (
                "agent.on_demand.tls",
                "CANDELA_AGENT__ON_DEMAND__TLS__KEY_FILE",
            ),
        ] {
            let none = tls_options(&settings(&[]), section);
            assert!(none.expect("none").is_none());
            let one = settings(&[(variable, path)]);
            let error = tls_options(&one, section)
                .expect_err("half of it")
                .to_string();
            let wanted = format!("{section}.cert_file is not; TLS needs both");
            assert!(error.contains(&wanted), "{error}");
        }
    }
}
