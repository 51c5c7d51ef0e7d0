//! Table positions as types, so that a stack id is never taken for a location id.

macro_rules! table_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in its table.
            #[inline]
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of the entry at `index`.
            ///
            /// # Panics
            /// When the table has outgrown 32 bits, which its limits exclude.
            #[inline]
            #[must_use]
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("tables are limited to 2^32 entries"))
            }
        }
    };
}

table_id! {
    /// A string in a [`StringTable`](crate::StringTable). 0 is the empty string.
    StringId
}
table_id! {
    /// A function in [`SymbolTables`](crate::SymbolTables).
    FunctionId
}
table_id! {
    /// A mapping in [`SymbolTables`](crate::SymbolTables). 0 is the unknown mapping.
    MappingId
}
table_id! {
    /// A location in [`SymbolTables`](crate::SymbolTables).
    LocationId
}
table_id! {
    /// A stack in a [`StackTable`](crate::StackTable). 0 is the empty stack.
    StackId
}
table_id! {
    /// A set of sample labels in a [`LabelSetTable`](crate::LabelSetTable). 0 is the empty set.
    LabelSetId
}
table_id! {
    /// A trace link of a profile. 0 is "no link".
    LinkId
}
