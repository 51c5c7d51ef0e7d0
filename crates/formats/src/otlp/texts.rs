//! Where OTLP requests have their texts, for those that are not UTF-8.

use crate::protobuf::repair::MessageTexts;

/// A message without further messages.
const fn strings(strings: &'static [u32]) -> MessageTexts {
    MessageTexts {
        strings,
        messages: &[],
    }
}

/// A message without strings of its own.
const fn messages(messages: &'static [(u32, &'static MessageTexts)]) -> MessageTexts {
    MessageTexts {
        strings: &[],
        messages,
    }
}

pub(crate) static PROFILES_REQUEST: MessageTexts =
    messages(&[(1, &RESOURCE_PROFILES), (2, &DICTIONARY)]);

static RESOURCE_PROFILES: MessageTexts = MessageTexts {
    strings: &[3],
    messages: &[(1, &RESOURCE), (2, &SCOPE_PROFILES)],
};

static SCOPE_PROFILES: MessageTexts = MessageTexts {
    strings: &[3],
    messages: &[(1, &SCOPE), (2, &PROFILE)],
};

/// The format of the payload that a profile was made of.
static PROFILE: MessageTexts = strings(&[9]);

/// `string_table` and `attribute_table`.
static DICTIONARY: MessageTexts = MessageTexts {
    strings: &[5],
    messages: &[(6, &ATTRIBUTE)],
};

/// Its key is in the table of strings.
static ATTRIBUTE: MessageTexts = messages(&[(2, &ANY_VALUE)]);

pub(crate) static LOGS_REQUEST: MessageTexts = messages(&[(1, &RESOURCE_LOGS)]);

static RESOURCE_LOGS: MessageTexts = MessageTexts {
    strings: &[3],
    messages: &[(1, &RESOURCE), (2, &SCOPE_LOGS)],
};

static SCOPE_LOGS: MessageTexts = MessageTexts {
    strings: &[3],
    messages: &[(1, &SCOPE), (2, &LOG_RECORD)],
};

/// Severity and event name; body and attributes.
static LOG_RECORD: MessageTexts = MessageTexts {
    strings: &[3, 12],
    messages: &[(5, &ANY_VALUE), (6, &KEY_VALUE)],
};

static RESOURCE: MessageTexts = messages(&[(1, &KEY_VALUE), (3, &ENTITY)]);

/// Schema, type and the keys of what it is told by.
static ENTITY: MessageTexts = strings(&[1, 2, 3, 4]);

static SCOPE: MessageTexts = MessageTexts {
    strings: &[1, 2],
    messages: &[(3, &KEY_VALUE)],
};

static KEY_VALUE: MessageTexts = MessageTexts {
    strings: &[1],
    messages: &[(2, &ANY_VALUE)],
};

/// A text, a list or a map.
static ANY_VALUE: MessageTexts = MessageTexts {
    strings: &[1],
    messages: &[(5, &ARRAY), (6, &MAP)],
};

static ARRAY: MessageTexts = messages(&[(1, &ANY_VALUE)]);
static MAP: MessageTexts = messages(&[(1, &KEY_VALUE)]);
