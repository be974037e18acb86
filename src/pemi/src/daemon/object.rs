// SPDX-License-Identifier: GPL-2.0-or-later
//! Objects of JSON, for answers. The macro that writes them would do, but each of its members is
//! three times the code.

use serde_json::{Map, Value};

/// An object with these members.
pub fn object(members: Vec<(&str, Value)>) -> Value {
    let mut object = Value::Object(Map::new());
    for (name, value) in members {
        object[name] = value;
    }
    object
}

/// One of numbers alone, which takes a third of that again.
pub fn numbers(members: &[(&str, u64)]) -> Value {
    // What collects into an object sorts before.
    let mut object = Value::Object(Map::new());
    for (name, value) in members {
        object[*name] = (*value).into();
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_have_their_names() {
        let inner = numbers(&[("a", 1), ("b", u64::MAX)]);
        let whole = object(vec![("inner", inner), ("text", "t".into())]);
        assert_eq!(whole, json!({"inner": {"a": 1, "b": u64::MAX}, "text": "t"}));
    }
}
