//! Super streams, and consumers of which one is active.

use std::collections::HashMap;

use rabbitmq_stream_client::types::{
    HashRoutingMurmurStrategy, Message, MessageContext, OffsetSpecification,
    RoutingKeyRoutingStrategy, RoutingStrategy, SuperStreamProducer,
};
use rabbitmq_stream_client::{Environment, NoDedup};
use serde_json::json;

use crate::connection::{Fault, Outcome, Run, settle, until};
use crate::inbox::{Inbox, Received, wait_for_excess};
use crate::messages::{message, number_of, numbers};
use crate::offsets::store;
use crate::publisher::{Answers, Publisher};

const REGIONS: [&str; 3] = ["amer", "emea", "apac"];

fn key_of(message: &Message) -> String {
    format!("key-{}", number_of(message))
}

fn region_of(message: &Message) -> String {
    REGIONS[number_of(message) % 3].to_owned()
}

fn by_hash() -> RoutingStrategy {
    RoutingStrategy::HashRoutingStrategy(HashRoutingMurmurStrategy { routing_extractor: &key_of })
}

fn by_region() -> RoutingStrategy {
    RoutingStrategy::RoutingKeyStrategy(RoutingKeyRoutingStrategy { routing_extractor: &region_of })
}

/// A super stream's producer that counts the confirms.
struct SuperPublisher {
    producer: SuperStreamProducer<NoDedup>,
    answers: Answers,
}

impl SuperPublisher {
    /// Creates the run's super stream and opens a producer on it.
    async fn open(
        run: &Run,
        environment: &Environment,
        keys: Option<Vec<String>>,
        routing: RoutingStrategy,
    ) -> Result<Self, Fault> {
        environment.stream_creator().create_super_stream(&run.stream, 3, keys).await?;
        let producer = environment.super_stream_producer(routing).build(&run.stream).await?;
        Ok(Self { producer, answers: Answers::default() })
    }

    /// Sends messages `first` to `next - 1` and waits until all are confirmed.
    async fn send_all(&mut self, first: usize, next: usize) -> Result<(), Fault> {
        let before = self.answers.count();
        for i in first..next {
            self.producer.send(message(i), self.answers.counter()).await?;
        }
        Ok(self.answers.wait(before + next - first).await?)
    }

    async fn close(self) -> Result<usize, Fault> {
        self.producer.close().await?;
        Ok(self.answers.confirmed())
    }
}

pub async fn super_hash(run: &Run) -> Outcome {
    routed(run, None, by_hash(), ["0", "1", "2"]).await
}

pub async fn super_key(run: &Run) -> Outcome {
    let keys = REGIONS.map(str::to_owned).to_vec();
    routed(run, Some(keys), by_region(), REGIONS).await
}

async fn routed(
    run: &Run,
    keys: Option<Vec<String>>,
    routing: RoutingStrategy,
    names: [&str; 3],
) -> Outcome {
    let environment = run.open().await?;
    let mut publisher = SuperPublisher::open(run, &environment, keys, routing).await?;
    publisher.send_all(0, 30).await?;
    let mut inboxes = Vec::new();
    for name in names {
        let first = environment.consumer().offset(OffsetSpecification::First);
        inboxes.push(run.consume(first, &format!("{}-{name}", run.stream)).await?);
    }
    until("30 messages", || inboxes.iter().map(Inbox::count).sum::<usize>() >= 30).await?;
    wait_for_excess().await;
    let mut read = HashMap::new();
    for (name, inbox) in names.into_iter().zip(&inboxes) {
        read.insert(name, numbers(&inbox.all())?);
    }
    Ok(json!({"confirmed": publisher.close().await?, "read": read}))
}

pub async fn super_read(run: &Run) -> Outcome {
    let environment = run.open().await?;
    let mut publisher = SuperPublisher::open(run, &environment, None, by_hash()).await?;
    publisher.send_all(0, 30).await?;
    let consumer = environment
        .super_stream_consumer()
        .offset(OffsetSpecification::First)
        .build(&run.stream)
        .await?;
    let handle = consumer.handle();
    let read = sorted(&Inbox::of(consumer).read(30).await?)?;
    handle.close().await?;
    Ok(json!({"confirmed": publisher.close().await?, "read": read}))
}

fn sorted(arrived: &[Received]) -> Result<Vec<usize>, String> {
    let mut found = numbers(arrived)?;
    found.sort_unstable();
    Ok(found)
}

/// Where a consumer that becomes active begins: behind what is stored, or at the first message.
async fn behind_stored(_is_active: u8, context: MessageContext) -> OffsetSpecification {
    match context.client().query_offset(context.name(), &context.stream()).await {
        Ok(offset) => OffsetSpecification::Offset(offset + 1),
        Err(_) => OffsetSpecification::First,
    }
}

pub async fn sac(run: &Run) -> Outcome {
    let environment = run.open_with_stream().await?;
    let client = run.client().await?;
    let member = || {
        environment
            .consumer()
            .name("group")
            .enable_single_active_consumer(true)
            .offset(OffsetSpecification::First)
            .consumer_update(behind_stored)
    };
    // The library gives every consumer a connection of its own.
    let consumer = member().build(&run.stream).await?;
    let handle = consumer.handle();
    let a = Inbox::of(consumer);
    settle().await;
    let b = run.consume(member(), &run.stream).await?;
    settle().await;
    let publisher = Publisher::open(run, environment.producer()).await?;
    publisher.send_all(0, 10).await?;
    a.wait(10).await?;
    // Not simply 9: what servers keep in a stream beside messages may take offsets too.
    store(&client, "group", &run.stream, a.all()[9].offset).await?;
    handle.close().await?;
    publisher.send_all(10, 20).await?;
    let read_by_b = b.read_numbers(10).await?;
    Ok(json!({"a": numbers(&a.all())?, "b": read_by_b}))
}

pub async fn super_sac(run: &Run) -> Outcome {
    let environment = run.open().await?;
    let client = run.client().await?;
    let mut publisher = SuperPublisher::open(run, &environment, None, by_hash()).await?;
    let mut members = Vec::new();
    for _ in 0..2 {
        let consumer = environment
            .super_stream_consumer()
            .name("group")
            .enable_single_active_consumer(true)
            .offset(OffsetSpecification::First)
            .consumer_update(behind_stored)
            .build(&run.stream)
            .await?;
        members.push((consumer.handle(), Inbox::of(consumer)));
        settle().await;
    }
    let (handle_of_b, b) = members.pop().ok_or("no second consumer")?;
    let (handle_of_a, a) = members.pop().ok_or("no first consumer")?;
    publisher.send_all(0, 30).await?;
    until("30 messages", || a.count() + b.count() >= 30).await?;
    wait_for_excess().await;
    let together = [a.all(), b.all()].concat();
    let had_before = b.count();
    let mut last = HashMap::new();
    for each in &together {
        let offset = last.entry(each.stream.as_str()).or_insert(each.offset);
        *offset = each.offset.max(*offset);
    }
    for (partition, offset) in last {
        store(&client, "group", partition, offset).await?;
    }
    handle_of_a.close().await?;
    publisher.send_all(30, 60).await?;
    let read_by_b = b.read(had_before + 30).await?;
    handle_of_b.close().await?;
    publisher.close().await?;
    Ok(json!({"together": sorted(&together)?, "b": sorted(&read_by_b[had_before..])?}))
}
