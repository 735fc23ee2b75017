use super::*;

fn yaml(text: &str) -> Node {
    parse(text, Format::Yaml).unwrap()
}

fn value(text: &str) -> Value {
    yaml(&format!("a: {text}")).under("a").unwrap().value.clone()
}

#[test]
fn plain_words_are_what_python_readers_make_of_them() {
    assert_eq!(value("1e-4"), Value::Text("1e-4".into()));
    assert_eq!(value("1.0e-4"), Value::Float(1e-4));
    assert_eq!(value("1.0e4"), Value::Text("1.0e4".into()));
    assert_eq!(value("-.5"), Value::Float(-0.5));
    assert_eq!(value("1_000"), Value::Int(1000));
    assert_eq!(value("yes"), Value::Bool(true));
    assert_eq!(value("'yes'"), Value::Text("yes".into()));
    assert_eq!(value("!!str 4"), Value::Text("4".into()));
    assert_eq!(value("!env HOME"), Value::Other("HOME".into()));
    assert_eq!(value("017"), Value::Int(15));
    assert_eq!(value("-019"), Value::Text("-019".into()));
    assert_eq!(value("99999999999999999999"), Value::Float(1e20));
    assert_eq!(value("~"), Value::Null);
    assert_eq!(value("1.9.4"), Value::Text("1.9.4".into()));
    assert_eq!(value("e5"), Value::Text("e5".into()));
    assert!(matches!(value(".nan"), Value::Float(x) if x.is_nan()));
}

#[test]
fn lines_and_columns_are_those_of_the_key() {
    let node = yaml("# a comment\ntrain:\n  lr: 1e-4\n  batch_size: 4\n");
    let train = node.under("train").unwrap().map().unwrap();
    assert_eq!((train[1].key.as_str(), train[1].at), ("batch_size", At { line: 4, column: 3 }));
    let node =
        parse("[train]\nlr = 1e-4\n\"ä\" = 1\n\"b\" = 0x1f\nlist = [1, 2]\nday = 2026-01-01\n", Format::Toml)
            .unwrap();
    let train = node.under("train").unwrap().map().unwrap();
    assert_eq!((train[2].key.as_str(), train[2].at), ("b", At { line: 4, column: 1 }));
    assert_eq!(train[2].node.value, Value::Int(31));
    assert_eq!(train[4].node.value, Value::Other("2026-01-01".into()));
}

#[test]
fn json_is_read_as_yaml() {
    let node = yaml("{\n\t\"train\": {\n\t\t\"lr\": 0.5,\n\t\t\"path\": \"a\\/b\\u00e4\"\n\t}\n}\n");
    let train = node.under("train").unwrap().map().unwrap();
    assert_eq!((train[0].at.line, &train[0].node.value), (3, &Value::Float(0.5)));
    assert_eq!(train[1].node.value, Value::Text("a/bä".into()));
}

#[test]
fn anchors_are_followed_and_own_keys_win_over_merged_ones() {
    let node = yaml("base: &b {lr: 1, epochs: 2}\ntrain:\n  <<: *b\n  lr: 3\n");
    assert_eq!(node.under("train.lr").unwrap().value, Value::Int(3));
    assert_eq!(node.under("train.epochs").unwrap().value, Value::Int(2));
}

#[test]
fn what_cant_be_read_is_refused_with_its_line() {
    let refused = |text: &str, format| parse(text, format).unwrap_err();
    assert_eq!(refused("a: 1\nb: [\n", Format::Yaml).at.line, 2);
    assert_eq!(refused("a = 1\nb = \n", Format::Toml).at.line, 2);
    assert!(refused("a: 1\n---\nb: 2\n", Format::Yaml).why.contains("second document"));
    assert!(refused(&"#".repeat(LONGEST + 1), Format::Yaml).why.contains("longer"));
    let deep = (0..100).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect::<String>();
    assert!(refused(&deep, Format::Yaml).why.contains("deeper"));
    let many = format!("a: [{}]", "1,".repeat(MOST + 1));
    assert!(refused(&many, Format::Yaml).why.contains("more than"));
    assert_eq!(yaml("# nothing\n").value, Value::Null);
}

#[test]
fn aliases_that_multiply_are_refused() {
    let mut text = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n".to_owned();
    for level in 1..30 {
        let before = format!("*a{},", level - 1).repeat(10);
        text.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    assert!(parse(&text, Format::Yaml).unwrap_err().why.contains("more than"));
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(500_000), "*a,".repeat(100_000));
    assert!(parse(&long, Format::Yaml).unwrap_err().why.contains("more than"));
}
