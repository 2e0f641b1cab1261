//! One run of one scenario: its connections, its stream, and how long it waits.

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use rabbitmq_stream_client::types::OffsetSpecification;
use rabbitmq_stream_client::{
    Client, ClientOptions, ConsumerBuilder, Environment, EnvironmentBuilder, TlsConfiguration,
};
use serde_json::Value;

use crate::inbox::{Inbox, Received};

pub type Fault = Box<dyn Error + Send + Sync>;
pub type Outcome = Result<Value, Fault>;

/// Of every wait.
const LIMIT: Duration = Duration::from_secs(20);

/// How long to wait for a connection to end that may be broken.
const CLOSE_LIMIT: Duration = Duration::from_secs(3);

type Closing = BoxFuture<'static, ()>;

pub struct Run {
    options: HashMap<String, String>,
    pub stream: String,
    values: HashMap<String, String>,
    closings: Mutex<Vec<Closing>>,
}

impl Run {
    pub fn new(options: HashMap<String, String>, words: &[String]) -> Self {
        let values = words[2..]
            .iter()
            .filter_map(|word| word.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Self { options, stream: words[1].clone(), values, closings: Mutex::default() }
    }

    /// Ends all that the run opened.
    pub async fn close(&self) {
        let closings = std::mem::take(&mut *self.closings.lock().unwrap());
        for closing in closings {
            if tokio::time::timeout(CLOSE_LIMIT, closing).await.is_err() {
                eprintln!("could not be closed in time");
            }
        }
    }

    /// Has something done when the run ends.
    pub fn at_end(&self, closing: impl Future<Output = ()> + Send + 'static) {
        self.closings.lock().unwrap().push(Box::pin(closing));
    }

    /// A value that followed the stream's name.
    pub fn value(&self, name: &str) -> Result<&str, Fault> {
        self.values.get(name).map(String::as_str).ok_or_else(|| format!("{name}=?").into())
    }

    fn option(&self, name: &str) -> &str {
        self.options.get(name).map_or("", String::as_str)
    }

    fn port(&self, name: &str) -> u16 {
        self.option(name).parse().unwrap_or_default()
    }

    /// How to connect to the plain port.
    pub fn builder(&self) -> EnvironmentBuilder {
        Environment::builder().host(self.option("host")).port(self.port("port"))
    }

    /// How to connect by TLS, trusting the authority that an option names.
    pub fn tls_builder(&self, authority: &str) -> Result<EnvironmentBuilder, Fault> {
        let trusted = TlsConfiguration::builder()
            .add_root_certificates(PathBuf::from(self.option(authority)))
            .build()?;
        Ok(self.builder().port(self.port("tls-port")).tls(trusted))
    }

    pub async fn open(&self) -> Result<Environment, Fault> {
        Ok(self.builder().build().await?)
    }

    /// Connects and creates the run's stream.
    pub async fn open_with_stream(&self) -> Result<Environment, Fault> {
        let environment = self.open().await?;
        environment.stream_creator().create(&self.stream).await?;
        Ok(environment)
    }

    /// A bare connection, for what the library's environment has no call for.
    pub async fn client(&self) -> Result<Client, Fault> {
        let options =
            ClientOptions::builder().host(self.option("host")).port(self.port("port")).build();
        let client = Client::connect(options).await?;
        let closed = client.clone();
        self.at_end(async move {
            let _ = closed.close().await;
        });
        Ok(client)
    }

    /// Begins to read a stream.
    pub async fn consume(&self, consumer: ConsumerBuilder, stream: &str) -> Result<Inbox, Fault> {
        let consumer = consumer.build(stream).await?;
        let handle = consumer.handle();
        self.at_end(async move {
            let _ = handle.close().await;
        });
        Ok(Inbox::of(consumer))
    }

    /// Reads so many messages from the beginning of the run's stream.
    pub async fn read_stream(
        &self,
        environment: &Environment,
        count: usize,
    ) -> Result<Vec<Received>, Fault> {
        let first = environment.consumer().offset(OffsetSpecification::First);
        Ok(self.consume(first, &self.stream).await?.read(count).await?)
    }
}

/// Asks again and again until it is so; an error when the limit is reached first.
pub async fn until(what: &str, is_so: impl Fn() -> bool) -> Result<(), String> {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > LIMIT {
            return Err(format!("waited too long for {what}"));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Gives a subscription the time to begin.
pub async fn settle() {
    tokio::time::sleep(Duration::from_millis(500)).await;
}
