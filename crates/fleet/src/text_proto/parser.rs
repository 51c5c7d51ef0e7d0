//! Tokens to a tree.

use crate::report::TextPosition;
use crate::text_proto::Field;
use crate::text_proto::Message;
use crate::text_proto::TextProtoError;
use crate::text_proto::Value;
use crate::text_proto::lexer::Lexer;
use crate::text_proto::lexer::Token;
use crate::text_proto::lexer::TokenKind;

/// Messages in messages: protobuf's own readers take 100, and a hostile text must not eat the stack.
const MOST_DEPTH: usize = 100;

/// Reads a whole text.
///
/// # Errors
/// The first place where the text is not of the format.
pub fn parse(text: &str) -> Result<Message, TextProtoError> {
    let mut lexer = Lexer::new(text);
    let token = lexer.next_token()?;
    let mut parser = Parser {
        lexer,
        token,
        depth: 0,
    };
    let mut message = Message::default();
    while parser.token.kind != TokenKind::End {
        message.fields.push(parser.field()?);
    }
    Ok(message)
}

struct Parser<'text> {
    lexer: Lexer<'text>,
    /// The one that is looked at.
    token: Token,
    depth: usize,
}

impl Parser<'_> {
    fn field(&mut self) -> Result<Field, TextProtoError> {
        let position = self.token.position;
        let name = self.field_name()?;
        let has_colon = self.take_symbol(':')?;
        let value_position = self.token.position;
        let value = match self.token.kind {
            TokenKind::Symbol('{' | '<') => self.message()?,
            TokenKind::Symbol('[') => self.list(has_colon)?,
            _ if !has_colon => return Err(self.unexpected("a colon or a { behind the name")),
            _ => self.scalar()?,
        };
        if !self.take_symbol(',')? {
            self.take_symbol(';')?;
        }
        Ok(Field {
            name,
            position,
            value,
            value_position,
        })
    }

    /// A name, or that of an extension or of a packed type in brackets: `[a.b/c.d]`.
    fn field_name(&mut self) -> Result<String, TextProtoError> {
        if let TokenKind::Name(name) = &self.token.kind {
            let name = name.clone();
            self.advance()?;
            return Ok(name);
        }
        if self.token.kind != TokenKind::Symbol('[') {
            return Err(self.unexpected("the name of a field"));
        }
        let mut name = "[".to_owned();
        self.advance()?;
        loop {
            match &self.token.kind {
                TokenKind::Name(part) => name.push_str(part),
                TokenKind::Symbol(symbol @ ('.' | '/' | '-')) => name.push(*symbol),
                TokenKind::Integer(digits) => name.push_str(&digits.to_string()),
                TokenKind::Symbol(']') if name.len() > 1 => break,
                _ => return Err(self.unexpected("the name of an extension and a ]")),
            }
            self.advance()?;
        }
        self.advance()?;
        name.push(']');
        Ok(name)
    }

    fn message(&mut self) -> Result<Value, TextProtoError> {
        let opening = self.token.position;
        if self.depth == MOST_DEPTH {
            return Err(TextProtoError {
                position: opening,
                message: format!("more than {MOST_DEPTH} messages in one another; nest fewer"),
            });
        }
        let closing = match self.token.kind {
            TokenKind::Symbol('<') => '>',
            _ => '}',
        };
        let body_start = self.token.end;
        self.depth += 1;
        self.advance()?;
        let mut fields = Vec::new();
        while !self.take_symbol(closing)? {
            if self.token.kind == TokenKind::End {
                return Err(TextProtoError {
                    position: opening,
                    message: format!("what is opened here is never closed; write {closing}"),
                });
            }
            fields.push(self.field()?);
        }
        self.depth -= 1;
        Ok(Value::Message(Message { fields, body_start }))
    }

    /// Only a list of messages may stand without a colon.
    fn list(&mut self, has_colon: bool) -> Result<Value, TextProtoError> {
        self.advance()?;
        let mut elements = Vec::new();
        if self.take_symbol(']')? {
            return Ok(Value::List(elements));
        }
        loop {
            let position = self.token.position;
            let element = match self.token.kind {
                TokenKind::Symbol('{' | '<') => self.message()?,
                _ if !has_colon => return Err(self.unexpected("a { or, before the list, a colon")),
                _ => self.scalar()?,
            };
            elements.push((position, element));
            if self.take_symbol(']')? {
                return Ok(Value::List(elements));
            }
            if !self.take_symbol(',')? {
                return Err(self.unexpected("a comma or a ]"));
            }
        }
    }

    fn scalar(&mut self) -> Result<Value, TextProtoError> {
        let is_negative = self.take_symbol('-')?;
        let value = match &self.token.kind {
            TokenKind::Text(_) if !is_negative => return self.joined_texts(),
            TokenKind::Integer(magnitude) => Value::Integer {
                is_negative,
                magnitude: *magnitude,
            },
            TokenKind::Float(value) => Value::Float(if is_negative { -value } else { *value }),
            TokenKind::Name(name) if is_negative => Value::Name(format!("-{name}")),
            TokenKind::Name(name) => Value::Name(name.clone()),
            _ => return Err(self.unexpected("a value")),
        };
        self.advance()?;
        Ok(value)
    }

    fn joined_texts(&mut self) -> Result<Value, TextProtoError> {
        let mut joined = Vec::new();
        while let TokenKind::Text(part) = &self.token.kind {
            joined.extend_from_slice(part);
            self.advance()?;
        }
        Ok(Value::Text(joined))
    }

    fn advance(&mut self) -> Result<(), TextProtoError> {
        self.token = self.lexer.next_token()?;
        Ok(())
    }

    fn take_symbol(&mut self, symbol: char) -> Result<bool, TextProtoError> {
        let is_there = self.token.kind == TokenKind::Symbol(symbol);
        if is_there {
            self.advance()?;
        }
        Ok(is_there)
    }

    fn unexpected(&self, wanted: &str) -> TextProtoError {
        let found = match &self.token.kind {
            TokenKind::Name(name) => format!("{name:?}"),
            TokenKind::Integer(number) => number.to_string(),
            TokenKind::Float(number) => number.to_string(),
            TokenKind::Text(_) => "a text in quotes".to_owned(),
            TokenKind::Symbol(symbol) => format!("'{symbol}'"),
            TokenKind::End => "the end".to_owned(),
        };
        let position: TextPosition = self.token.position;
        TextProtoError {
            position,
            message: format!("{found} stands where {wanted} should"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    fn only_field(text: &str) -> Field {
        let mut fields = parse(text).unwrap().fields;
        assert_eq!(fields.len(), 1, "{text:?}");
        fields.remove(0)
    }

    #[test]
    fn messages_have_two_brackets_and_a_colon_or_none() {
        for text in [
            "a { b: 1 }",
            "a: { b: 1 }",
            "a < b: 1 >",
            "a:<b:1>,",
            "a{b:1;};",
            "a{b:1,}",
        ] {
            let field = only_field(text);
            let Value::Message(message) = field.value else {
                panic!("{text:?} has a message");
            };
            assert_eq!(message.fields[0].name, "b", "{text:?}");
            let before = &text[..message.body_start];
            assert!(before.ends_with(['{', '<']), "{text:?}");
        }
    }

    #[test]
    fn texts_that_follow_each_other_are_one() {
        let field = only_field("a: 'one ' \"two\" # and\n ' three'");
        assert_eq!(field.value, Value::Text(b"one two three".to_vec()));
    }

    #[test]
    fn lists_spread_into_values() {
        let field = only_field("a: [1, -2, x, 'y', {b: 1}]");
        let values: Vec<Value> = field.values().map(|(_, value)| value.clone()).collect();
        assert_eq!(values.len(), 5);
        let minus_two = Value::Integer {
            is_negative: true,
            magnitude: 2,
        };
        assert_eq!(values[1], minus_two);
        assert_eq!(only_field("a: []").values().count(), 0);
        assert_eq!(only_field("a [{}, <>]").values().count(), 2);
        assert_eq!(only_field("a: 1").values().count(), 1);
    }

    #[test]
    fn names_of_extensions_and_signs_are_read() {
        assert_eq!(only_field("[a.b/c.d-2]: 1").name, "[a.b/c.d-2]");
        assert_eq!(only_field("a: -inf").value, Value::Name("-inf".to_owned()));
        assert_eq!(only_field("a: -1.5").value, Value::Float(-1.5));
        assert_eq!(parse(" # nothing\n").unwrap().fields, []);
    }

    #[test]
    fn errors_say_what_stands_where() {
        let open = "line 1, column 3: what is opened here is never closed; write }";
        assert_eq!(error("a {\n b: 1\n"), open);
        let wrong = "line 2, column 1: '}' stands where the name of a field should";
        assert_eq!(error("a: 1\n}"), wrong);
        assert_eq!(
            error("a 1"),
            "line 1, column 3: 1 stands where a colon or a { behind the name should"
        );
        assert_eq!(
            error("a:"),
            "line 1, column 3: the end stands where a value should"
        );
        assert_eq!(
            error("a: [1 2]"),
            "line 1, column 7: 2 stands where a comma or a ] should"
        );
        assert_eq!(
            error("a { >"),
            "line 1, column 5: '>' stands where the name of a field should"
        );
        assert_eq!(
            error("a: %"),
            "line 1, column 4: '%' stands where a field, a value or a bracket should"
        );
        for text in [
            "[]: 1", "[a: 1", "a: -'x'", "a: [", "a: [1,]", "a [1]", ":", "a: {b}", "a: 1 2",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "a{".repeat(depth), "}".repeat(depth));
        assert!(parse(&nested(100)).is_ok());
        let message = "line 1, column 202: more than 100 messages in one another; nest fewer";
        assert_eq!(error(&nested(101)), message);
        assert!(parse(&"a{".repeat(100_000)).is_err());
    }
}
