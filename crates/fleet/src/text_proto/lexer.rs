//! Text to tokens, each with its place.

use crate::report::TextPosition;
use crate::text_proto::TextProtoError;
use crate::text_proto::strings;

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Name(String),
    Integer(u64),
    Float(f64),
    Text(Vec<u8>),
    Symbol(char),
    End,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) position: TextPosition,
    /// In bytes: where the next token may begin.
    pub(super) end: usize,
}

/// Gives one token after the other.
pub(super) struct Lexer<'text> {
    text: &'text str,
    offset: usize,
    line: usize,
    column: usize,
}

impl<'text> Lexer<'text> {
    pub(super) fn new(text: &'text str) -> Self {
        Self {
            text,
            offset: 0,
            line: 1,
            column: 1,
        }
    }

    pub(super) fn next_token(&mut self) -> Result<Token, TextProtoError> {
        self.skip_spaces_and_comments();
        let position = self.position();
        let kind = match self.peek() {
            None => TokenKind::End,
            Some('"' | '\'') => TokenKind::Text(self.text_in_quotes(position)?),
            Some(first) if is_name_start(first) => {
                TokenKind::Name(self.take_while(is_name_part).to_owned())
            }
            Some(first) if first.is_ascii_digit() || self.is_fraction() => self.number(position)?,
            Some(symbol) if "{}<>[]:,;-/.".contains(symbol) => {
                self.advance();
                TokenKind::Symbol(symbol)
            }
            Some(other) => {
                let message =
                    format!("{other:?} stands where a field, a value or a bracket should");
                return Err(TextProtoError { position, message });
            }
        };
        Ok(Token {
            kind,
            position,
            end: self.offset,
        })
    }

    fn rest(&self) -> &'text str {
        &self.text[self.offset..]
    }

    fn position(&self) -> TextPosition {
        TextPosition {
            line: self.line,
            column: self.column,
        }
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn advance(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.offset += character.len_utf8();
        self.column += 1;
        if character == '\n' {
            self.line += 1;
            self.column = 1;
        }
        Some(character)
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'text str {
        let rest = self.rest();
        let end = rest.find(|character| !is_part(character));
        let taken = &rest[..end.unwrap_or(rest.len())];
        for _ in taken.chars() {
            self.advance();
        }
        taken
    }

    fn skip_spaces_and_comments(&mut self) {
        loop {
            self.take_while(|character| character.is_ascii_whitespace() || character == '\u{b}');
            if self.peek() != Some('#') {
                return;
            }
            self.take_while(|character| character != '\n');
        }
    }

    /// `.5` is a number, `.` alone is part of a name.
    fn is_fraction(&self) -> bool {
        let mut characters = self.rest().chars();
        let is_point = characters.next() == Some('.');
        is_point && characters.next().is_some_and(|next| next.is_ascii_digit())
    }

    fn text_in_quotes(&mut self, position: TextPosition) -> Result<Vec<u8>, TextProtoError> {
        let quote = self.advance();
        let mut inner_end = None;
        let body_start = self.offset;
        while let Some(character) = self.peek() {
            if character == '\n' {
                break;
            }
            if Some(character) == quote {
                inner_end = Some(self.offset);
                self.advance();
                break;
            }
            self.advance();
            // Whatever is escaped ends no text; a line's end does.
            if character == '\\' && self.peek() != Some('\n') {
                self.advance();
            }
        }
        let Some(inner_end) = inner_end else {
            let message = "a text in quotes has no end on its line; close it".to_owned();
            return Err(TextProtoError { position, message });
        };
        strings::unescaped(&self.text[body_start..inner_end])
            .map_err(|message| TextProtoError { position, message })
    }

    fn number(&mut self, position: TextPosition) -> Result<TokenKind, TextProtoError> {
        let start = self.offset;
        self.take_while(|character| is_name_part(character) || character == '.');
        // Signs belong to a number behind the e of its exponent only.
        let is_hexadecimal =
            self.text[start..].starts_with("0x") || self.text[start..].starts_with("0X");
        let has_open_exponent = self.text[start..self.offset].ends_with(['e', 'E']);
        if !is_hexadecimal && has_open_exponent && matches!(self.peek(), Some('+' | '-')) {
            self.advance();
            self.take_while(is_name_part);
        }
        let written = &self.text[start..self.offset];
        parsed_number(written).ok_or_else(|| TextProtoError {
            position,
            message: format!("{written:?} is not a number; write for example 100, 0x64 or 1.5"),
        })
    }
}

fn is_name_start(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_'
}

fn is_name_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

fn parsed_number(written: &str) -> Option<TokenKind> {
    let hexadecimal = written.strip_prefix("0x").or(written.strip_prefix("0X"));
    if let Some(digits) = hexadecimal {
        return integer(digits, 16);
    }
    let is_octal = written.len() > 1 && written.starts_with('0');
    if is_octal && written.bytes().all(|byte| byte.is_ascii_digit()) {
        return integer(written, 8);
    }
    if written.bytes().all(|byte| byte.is_ascii_digit()) {
        // Beyond 64 bits it is a double, as in the specification.
        return integer(written, 10).or_else(|| Some(TokenKind::Float(written.parse().ok()?)));
    }
    let without_suffix = written.strip_suffix(['f', 'F']).unwrap_or(written);
    let is_float_part = |byte: u8| byte.is_ascii_digit() || b".eE+-".contains(&byte);
    // Rust reads "inf" and "nan", too; these begin with no digit and never come here.
    if !without_suffix.bytes().all(is_float_part) {
        return None;
    }
    Some(TokenKind::Float(without_suffix.parse().ok()?))
}

fn integer(digits: &str, base: u32) -> Option<TokenKind> {
    // `from_str_radix` would take a sign.
    let has_sign = digits.starts_with(['+', '-']);
    let value = u64::from_str_radix(digits, base)
        .ok()
        .filter(|_| !has_sign)?;
    Some(TokenKind::Integer(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Result<Vec<TokenKind>, TextProtoError> {
        let mut lexer = Lexer::new(text);
        let mut kinds = Vec::new();
        loop {
            let token = lexer.next_token()?;
            if token.kind == TokenKind::End {
                return Ok(kinds);
            }
            kinds.push(token.kind);
        }
    }

    #[test]
    fn numbers_have_three_bases_and_fractions() {
        let numbers = kinds("100 0x1F 017 0 1.5 .5 2. 1e3 1E-3 1.5e+2f 3f").unwrap();
        let expected = [
            TokenKind::Integer(100),
            TokenKind::Integer(31),
            TokenKind::Integer(15),
            TokenKind::Integer(0),
            TokenKind::Float(1.5),
            TokenKind::Float(0.5),
            TokenKind::Float(2.0),
            TokenKind::Float(1000.0),
            TokenKind::Float(0.001),
            TokenKind::Float(150.0),
            TokenKind::Float(3.0),
        ];
        assert_eq!(numbers, expected);
        for text in ["1x", "08", "0x", "1.2.3", "1e", "12abc", "0x1.5"] {
            assert!(kinds(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn places_are_lines_and_characters() {
        let mut lexer = Lexer::new("# ä { \n  'ä' # ö\n\t name");
        let text = lexer.next_token().unwrap();
        assert_eq!((text.position.line, text.position.column), (2, 3));
        let name = lexer.next_token().unwrap();
        assert_eq!((name.position.line, name.position.column), (3, 3));
        assert_eq!(lexer.next_token().unwrap().kind, TokenKind::End);
    }

    #[test]
    fn texts_end_on_their_line() {
        let error = kinds("name: \"open\nnext: 1").unwrap_err();
        let message = "line 1, column 7: a text in quotes has no end on its line; close it";
        assert_eq!(error.to_string(), message);
        assert!(kinds(r#""\""#).is_err());
        let quoted = [TokenKind::Text(b"a\"b".to_vec())];
        assert_eq!(kinds(r#""a\"b""#).unwrap(), quoted);
    }
}
