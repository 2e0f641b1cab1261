//! The scenarios of SCENARIOS.md on the crate rabbitmq-stream-client.

mod basics;
mod connection;
mod groups;
mod inbox;
mod messages;
mod offsets;
mod publisher;
mod recovery;

use std::collections::HashMap;
use std::io::{BufRead, Write};

use connection::{Outcome, Run};
use serde_json::{Value, json};

/// All that this library offers, in the order of the page.
const SCENARIOS: &[&str] = &[
    "publish",
    "batch",
    "large",
    "offset-first",
    "offset-last",
    "offset-next",
    "offset-absolute",
    "offset-beyond",
    "offset-timestamp",
    "offset-future",
    "tracking",
    "dedup",
    "filter",
    "super-hash",
    "super-key",
    "super-read",
    "sac",
    "super-sac",
    "reconnect",
    "tls",
    "tls-distrust",
    "errors",
    "write",
    "read",
];

async fn perform(name: &str, run: &Run) -> Outcome {
    match name {
        "publish" => basics::publish(run).await,
        "batch" => basics::batch(run).await,
        "large" => basics::large(run).await,
        "tracking" => offsets::tracking(run).await,
        "dedup" => basics::dedup(run).await,
        "filter" => basics::filter(run).await,
        "super-hash" => groups::super_hash(run).await,
        "super-key" => groups::super_key(run).await,
        "super-read" => groups::super_read(run).await,
        "sac" => groups::sac(run).await,
        "super-sac" => groups::super_sac(run).await,
        "reconnect" => recovery::reconnect(run).await,
        "tls" => basics::tls(run).await,
        "tls-distrust" => basics::tls_distrust(run).await,
        "errors" => recovery::errors(run).await,
        "write" => basics::write(run).await,
        "read" => basics::read(run).await,
        _ => match name.strip_prefix("offset-") {
            Some(specification) => offsets::begin_at(run, specification).await,
            None => Err(format!("no scenario {name}").into()),
        },
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    let mut options = HashMap::new();
    while let Some(option) = arguments.next_if(|each| each.starts_with("--")) {
        let value = arguments.next().unwrap_or_default();
        options.insert(option[2..].to_owned(), value);
    }
    let words: Vec<String> = arguments.collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("no runtime");
    if !words.is_empty() {
        say(&runtime.block_on(attempt(options, words)));
        return;
    }
    say(&json!({"ready": {
        "client": "rust", "version": library_version(), "scenarios": SCENARIOS,
    }}));
    let mut line = String::new();
    while std::io::stdin().lock().read_line(&mut line).is_ok_and(|size| size > 0) {
        let words = line.split_whitespace().map(str::to_owned).collect();
        say(&runtime.block_on(attempt(options.clone(), words)));
        line.clear();
    }
}

/// Runs one scenario, given as its words; what it answers is the line to print.
async fn attempt(options: HashMap<String, String>, words: Vec<String>) -> Value {
    if words.len() < 2 {
        return json!({"error": format!("expected SCENARIO STREAM, got {words:?}")});
    }
    // A task of its own: a panic in it, ours or the library's, ends the scenario and not the program.
    let task = tokio::spawn(async move {
        let run = Run::new(options, &words);
        let outcome = perform(&words[0], &run).await.map_err(|fault| fault.to_string());
        run.close().await;
        outcome
    });
    match task.await {
        Ok(Ok(found)) => json!({"ok": found}),
        Ok(Err(text)) => json!({"error": text}),
        Err(panic) => json!({"error": panic.to_string()}),
    }
}

/// The library does not tell its version; the lock file does.
fn library_version() -> &'static str {
    include_str!("../Cargo.lock")
        .split_once("name = \"rabbitmq-stream-client\"\nversion = \"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map_or("unknown", |(version, _)| version)
}

fn say(document: &Value) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{document}").and_then(|()| out.flush()).expect("nobody listens");
}

/// Tells the harness what is to be done and returns when it was.
fn wait_for(what: &str) -> Result<(), String> {
    say(&json!({"wait": what}));
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    match read {
        Ok(_) if line.trim() == "go" => Ok(()),
        _ => Err(format!("expected the line go, got {line:?}")),
    }
}
