//! What a producer can do with one stream.

use rabbitmq_stream_client::types::{Message, OffsetSpecification};
use rabbitmq_stream_client::{Client, Environment, FilterConfiguration};
use serde_json::json;

use crate::connection::{Fault, Outcome, Run};
use crate::messages::{body, body_of_size, number, number_of, numbers, offsets, summary};
use crate::publisher::{Answers, Publisher};

pub async fn publish(run: &Run) -> Outcome {
    publish_and_read(run, run.open_with_stream().await?, 20).await
}

pub async fn tls(run: &Run) -> Outcome {
    let environment = run.tls_builder("ca")?.build().await?;
    environment.stream_creator().create(&run.stream).await?;
    publish_and_read(run, environment, 20).await
}

pub async fn tls_distrust(run: &Run) -> Outcome {
    let connected = run.tls_builder("other-ca")?.build().await.is_ok();
    Ok(json!({"connected": connected}))
}

/// Sends so many messages over a connection of some kind and reads them over it.
async fn publish_and_read(run: &Run, environment: Environment, count: usize) -> Outcome {
    let publisher = Publisher::open(run, environment.producer()).await?;
    publisher.send_all(0, count).await?;
    let arrived = run.read_stream(&environment, count).await?;
    Ok(json!({
        "confirmed": publisher.answers.confirmed(), "refused": publisher.answers.refused(),
        "read": numbers(&arrived)?, "offsets": offsets(&arrived),
    }))
}

pub async fn batch(run: &Run) -> Outcome {
    let environment = run.open_with_stream().await?;
    let publisher = Publisher::open(run, environment.producer().batch_size(100)).await?;
    for first in (0..1000).step_by(100) {
        publisher.send_batch("m", first, first + 100).await?;
    }
    publisher.answers.wait(1000).await?;
    let arrived = run.read_stream(&environment, 1000).await?;
    numbers(&arrived)?;
    Ok(json!({
        "confirmed": publisher.answers.confirmed(), "refused": publisher.answers.refused(),
        "read": summary(&arrived),
    }))
}

pub async fn large(run: &Run) -> Outcome {
    let environment = run.open_with_stream().await?;
    let publisher = Publisher::open(run, environment.producer()).await?;
    let sizes = [1, 127, 255, 256, 4095, 65535, 65536, 1_000_000];
    for (i, size) in sizes.into_iter().enumerate() {
        publisher.send(Message::builder().body(body_of_size(size)).build()).await?;
        publisher.answers.wait(i + 1).await?;
    }
    let arrived = run.read_stream(&environment, sizes.len()).await?;
    let found: Vec<usize> = arrived.iter().map(|each| each.body.len()).collect();
    if let Some(wrong) = arrived.iter().find(|each| each.body != body_of_size(each.body.len())) {
        return Err(format!("a wrong body of {} bytes", wrong.body.len()).into());
    }
    Ok(json!({
        "confirmed": publisher.answers.confirmed(), "refused": publisher.answers.refused(),
        "sizes": found, "read": summary(&arrived),
    }))
}

/// Publishes in groups of ten, each confirmed before the next is sent.
pub async fn write(run: &Run) -> Outcome {
    if run.value("codec")? != "plain" {
        return Err("the library writes no sub-entries".into());
    }
    let count: usize = run.value("count")?.parse()?;
    let environment = run.open().await?;
    // A stream that exists is taken.
    let _ = environment.stream_creator().create(&run.stream).await;
    let publisher = Publisher::open(run, environment.producer()).await?;
    for first in (0..count).step_by(10) {
        let next = (first + 10).min(count);
        publisher.send_batch(run.value("mark")?, first, next).await?;
        publisher.answers.wait(next).await?;
    }
    Ok(json!({
        "confirmed": publisher.answers.confirmed(), "refused": publisher.answers.refused(),
    }))
}

pub async fn read(run: &Run) -> Outcome {
    let environment = run.open().await?;
    let arrived = run.read_stream(&environment, run.value("count")?.parse()?).await?;
    for each in &arrived {
        number(run.value("mark")?, &each.body)?;
    }
    Ok(json!({"read": summary(&arrived)}))
}

pub async fn dedup(run: &Run) -> Outcome {
    let environment = run.open_with_stream().await?;
    let client = run.client().await?;
    let mut found = Deduplicated::default();
    send_named(run, &environment, &client, &[(0..10, 1), (106..116, 6)], &mut found).await?;
    found.last.push(client.query_publisher_sequence("p", &run.stream).await?);
    send_named(run, &environment, &client, &[(215..217, 15)], &mut found).await?;
    let arrived = run.read_stream(&environment, 16).await?;
    Ok(json!({"confirmed": found.confirmed, "last": found.last, "read": numbers(&arrived)?}))
}

#[derive(Default)]
struct Deduplicated {
    confirmed: Vec<usize>,
    last: Vec<u64>,
}

/// Sends messages by a producer named p, with publishing ids that count up from those given.
async fn send_named(
    run: &Run,
    environment: &Environment,
    client: &Client,
    parts: &[(std::ops::Range<usize>, usize)],
    found: &mut Deduplicated,
) -> Result<(), Fault> {
    let mut producer = environment.producer().name("p").build(&run.stream).await?;
    for (messages, id) in parts {
        let answers = Answers::default();
        for (k, i) in messages.clone().enumerate() {
            let message =
                Message::builder().publishing_id((id + k) as u64).body(body("m", i)).build();
            producer.send(message, answers.counter()).await?;
        }
        answers.wait(messages.len()).await?;
        found.confirmed.push(answers.confirmed());
        // The producer itself cannot be asked.
        found.last.push(client.query_publisher_sequence("p", &run.stream).await?);
    }
    Ok(producer.close().await?)
}

pub async fn filter(run: &Run) -> Outcome {
    let environment = run.open_with_stream().await?;
    let value_of = |message: &Message| ["apple", "banana"][number_of(message) / 10].to_owned();
    let filtered = environment.producer().filter_value_extractor(value_of);
    let publisher = Publisher::open(run, filtered).await?;
    // The library's extractor cannot say that a message has no value.
    let unfiltered = Publisher::open(run, environment.producer()).await?;
    publisher.send_all(0, 10).await?;
    publisher.send_all(10, 20).await?;
    unfiltered.send_all(20, 30).await?;
    Ok(json!({
        "confirmed": publisher.answers.confirmed() + unfiltered.answers.confirmed(),
        "banana": read_filtered(run, &environment, &["banana"], false, 10).await?,
        "apple or banana":
            read_filtered(run, &environment, &["apple", "banana"], false, 20).await?,
        "banana or none": read_filtered(run, &environment, &["banana"], true, 20).await?,
    }))
}

async fn read_filtered(
    run: &Run,
    environment: &Environment,
    values: &[&str],
    match_unfiltered: bool,
    count: usize,
) -> Result<Vec<usize>, Fault> {
    let values = values.iter().map(|each| (*each).to_owned()).collect();
    let wanted = FilterConfiguration::new(values, match_unfiltered).post_filter(|_| true);
    let consumer =
        environment.consumer().offset(OffsetSpecification::First).filter_input(Some(wanted));
    Ok(run.consume(consumer, &run.stream).await?.read_numbers(count).await?)
}
