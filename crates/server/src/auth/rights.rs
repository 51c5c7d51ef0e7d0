//! What callers may do.

/// What a request takes of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Nothing: everybody may, also without a name.
    Anyone,
    /// To look at profiles.
    Read,
    /// To send profiles and symbols.
    Write,
    /// To erase. Who may do this may do all.
    Admin,
    /// To profile the server itself. Its profile shows what it does for every tenant, so an administrator of one of them
    /// does not have this right.
    Server,
}

/// The rights of a caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    read: bool,
    write: bool,
    admin: bool,
}

impl Right {
    /// Those that a token or a user can be given.
    pub const GRANTED: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    /// The name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anyone => "anyone",
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin | Self::Server => "admin",
        }
    }

    /// The right of this name that a token or a user can be given.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::GRANTED.into_iter().find(|right| right.name() == name)
    }
}

impl Rights {
    /// None at all.
    pub const NONE: Self = Self {
        read: false,
        write: false,
        admin: false,
    };

    /// All of them.
    pub const ALL: Self = Self {
        read: true,
        write: true,
        admin: true,
    };

    /// These and one more.
    #[must_use]
    pub const fn with(mut self, right: Right) -> Self {
        match right {
            Right::Anyone => {}
            Right::Read => self.read = true,
            Right::Write => self.write = true,
            Right::Admin | Right::Server => self = Self::ALL,
        }
        self
    }

    /// Whether these are enough.
    #[must_use]
    pub const fn allow(self, right: Right) -> bool {
        match right {
            Right::Anyone => true,
            Right::Read => self.read,
            Right::Write => self.write,
            Right::Admin | Right::Server => self.admin,
        }
    }
}

impl FromIterator<Right> for Rights {
    fn from_iter<I: IntoIterator<Item = Right>>(rights: I) -> Self {
        rights.into_iter().fold(Self::NONE, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_allows_itself_and_admin_allows_all() {
        for given in Right::GRANTED {
            let rights = Rights::NONE.with(given);
            for wanted in Right::GRANTED {
                let expected = given == wanted || given == Right::Admin;
                assert_eq!(rights.allow(wanted), expected, "{given:?} for {wanted:?}");
            }
            assert!(rights.allow(Right::Anyone));
            assert_eq!(Right::from_name(given.name()), Some(given));
        }
        assert!(!Rights::NONE.allow(Right::Read));
        assert_eq!(Right::from_name("anyone"), None);
        assert_eq!(Rights::from_iter(Right::GRANTED), Rights::ALL);
    }
}
