//! The profile data model: labels, selectors, symbol tables, interned stacks, profiles, flame trees. Pure values.
