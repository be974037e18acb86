// SPDX-License-Identifier: GPL-2.0-or-later
//! The C program beside this, compiled with the header and linked with the library.

use std::path::Path;
use std::process::Command;

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {told}");
}

#[test]
fn a_program_in_c_finds_a_loss() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // .../debug/deps/session-123
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    // Tests alone do not put the library where it can be found.
    run(Command::new(env!("CARGO"))
        .args(["build", "--offline", "--target-dir"])
        .arg(folder.parent().unwrap())
        .current_dir(here));
    let program = folder.join("pemi-sidekick-c-session");
    run(Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
        .args([here, &here.join("tests/session.c")])
        .arg(folder.join("libpemi_sidekick_c.a"))
        .args(["-lgcc_s", "-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program));
    run(&mut Command::new(&program));
    // And that the header is one for C++ as well, where there is a compiler.
    if Command::new("c++").arg("--version").output().is_ok() {
        run(Command::new("c++")
            .args(["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"])
            .args(["-x", "c++"])
            .arg(here.join("pemi_sidekick.h")));
    }
}
