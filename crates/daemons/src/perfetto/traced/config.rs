//! `config_text` as `traced` takes it: in protobuf, by Perfetto's own definitions of what it may say.

use perfetto_protos::trace_config::TraceConfig;
use protobuf::Message;
use protobuf::text_format;

use crate::perfetto::traced::error::TracedError;

/// A `TraceConfig`, all of it: a kilobyte, which stands beside small ones in an enum.
#[derive(Clone, Debug)]
pub(crate) struct TracedConfig(Box<TraceConfig>);

/// A `TraceConfig` with the name by which its trace is known among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionConfig {
    pub(crate) name: String,
    /// In protobuf.
    pub(crate) trace_config: Vec<u8>,
}

impl TracedConfig {
    /// Reads a text.
    ///
    /// # Errors
    /// [`TracedError::ConfigText`].
    pub(crate) fn read(text: &str) -> Result<Self, TracedError> {
        let config = text_format::parse_from_str::<TraceConfig>(text);
        let config = config.map_err(|error| TracedError::ConfigText {
            reason: error.to_string(),
        })?;
        Ok(Self(Box::new(config)))
    }

    /// The configuration of a trace, called so unless the text has a name for it.
    pub(crate) fn named(&self, name: &str) -> SessionConfig {
        let mut config = self.0.clone();
        // A snapshot is uncompressed whatever the text says: it is looked into, and whoever reads it later need not know how.
        config.clear_compression_type();
        if !config.has_unique_session_name() {
            config.set_unique_session_name(name.to_owned());
        }
        SessionConfig {
            name: config.unique_session_name().to_owned(),
            trace_config: config
                .write_to_bytes()
                .expect("no field of a TraceConfig is required"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_messages_with_a_name() {
        let text = "buffers { size_kb: 300 fill_policy: DISCARD } compression_type: COMPRESSION_TYPE_DEFLATE";
        let config = TracedConfig::read(text).expect("a text").named("ours");
        assert_eq!(config.name, "ours");
        assert_eq!(
            config.trace_config,
            b"\x0a\x05\x08\xac\x02\x20\x02\xb2\x01\x04ours"
        );
        let named = TracedConfig::read("unique_session_name: \"theirs\"").expect("a text");
        assert_eq!(named.named("ours").name, "theirs");
    }

    #[test]
    fn what_perfetto_does_not_know_is_told() {
        for (text, told) in [
            ("bufers { size_kb: 300 }", "bufers"),
            ("buffers { size_kb: \"large\" }", "1:20"),
            ("trigger_config { trigger_mode: CLONE }", "CLONE"),
        ] {
            let error = TracedConfig::read(text).expect_err(text);
            assert!(error.is_permanent(), "{error}");
            assert!(error.to_string().contains(told), "{error}");
        }
    }
}
