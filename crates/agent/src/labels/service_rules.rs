//! Service names that the user configured.

use regex::Regex;

use crate::labels::ProcessFacts;

/// Names the processes that match all of its patterns.
///
/// ```
/// use candela_agent::{ProcessFacts, ServiceRule};
///
/// let rule = ServiceRule::new("billing-$1")?.with_command_line(r"/srv/billing/(\w+)")?;
/// let facts = ProcessFacts {
///     arguments: vec!["/usr/bin/worker".into(), "/srv/billing/eu".into()],
///     ..ProcessFacts::default()
/// };
/// assert_eq!(rule.apply(&facts).as_deref(), Some("billing-eu"));
/// # Ok::<(), candela_agent::AgentError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ServiceRule {
    service: String,
    executable: Option<Regex>,
    command_line: Option<Regex>,
    cgroup: Option<Regex>,
}

impl ServiceRule {
    /// A rule that names everything `service`. `$1` and `${name}` stand for groups of the last
    /// pattern that is set of cgroup, executable, command line.
    ///
    /// # Errors
    /// When the name is empty.
    pub fn new(service: &str) -> Result<Self, crate::AgentError> {
        if service.is_empty() {
            return Err(crate::AgentError::EmptyServiceName);
        }
        Ok(Self {
            service: service.to_owned(),
            executable: None,
            command_line: None,
            cgroup: None,
        })
    }

    /// Only processes whose executable's path matches.
    ///
    /// # Errors
    /// When the pattern is no regular expression.
    pub fn with_executable(mut self, pattern: &str) -> Result<Self, crate::AgentError> {
        self.executable = Some(compile(pattern)?);
        Ok(self)
    }

    /// Only processes whose arguments, joined by spaces, match.
    ///
    /// # Errors
    /// When the pattern is no regular expression.
    pub fn with_command_line(mut self, pattern: &str) -> Result<Self, crate::AgentError> {
        self.command_line = Some(compile(pattern)?);
        Ok(self)
    }

    /// Only processes whose cgroup's path matches.
    ///
    /// # Errors
    /// When the pattern is no regular expression.
    pub fn with_cgroup(mut self, pattern: &str) -> Result<Self, crate::AgentError> {
        self.cgroup = Some(compile(pattern)?);
        Ok(self)
    }

    /// The service name for a process, or `None` when the rule does not match.
    #[must_use]
    pub fn apply(&self, facts: &ProcessFacts) -> Option<String> {
        let mut service = self.service.clone();
        let command_line = facts.arguments.join(" ");
        let sources = [
            (&self.cgroup, facts.cgroup.path.as_str()),
            (&self.executable, facts.executable.as_str()),
            (&self.command_line, command_line.as_str()),
        ];
        for (pattern, text) in sources {
            let Some(pattern) = pattern else { continue };
            let captures = pattern.captures(text)?;
            service.clear();
            captures.expand(&self.service, &mut service);
        }
        (!service.is_empty()).then_some(service)
    }
}

fn compile(pattern: &str) -> Result<Regex, crate::AgentError> {
    Regex::new(pattern).map_err(|source| crate::AgentError::ServicePattern {
        pattern: pattern.to_owned(),
        source: Box::new(source),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patterns_must_match() {
        let rule = ServiceRule::new("edge")
            .and_then(|rule| rule.with_executable("nginx$"))
            .and_then(|rule| rule.with_cgroup("edge"))
            .expect("valid patterns");
        let mut facts = ProcessFacts {
            executable: "/usr/sbin/nginx".to_owned(),
            ..ProcessFacts::default()
        };
        assert_eq!(rule.apply(&facts), None);
        facts.cgroup.path = "/system.slice/edge.service".to_owned();
        assert_eq!(rule.apply(&facts).as_deref(), Some("edge"));
    }

    #[test]
    fn a_broken_pattern_is_named() {
        let error = ServiceRule::new("x")
            .and_then(|rule| rule.with_executable("(("))
            .expect_err("an open group");
        assert!(error.to_string().contains("(("), "{error}");
    }
}
