package compat;

import com.rabbitmq.stream.Environment;
import com.rabbitmq.stream.EnvironmentBuilder;
import com.rabbitmq.stream.OffsetSpecification;
import com.rabbitmq.stream.ProducerBuilder;
import com.rabbitmq.stream.compression.Compression;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.UnaryOperator;

/** What a producer can do with one stream. */
final class Publishing {

  private Publishing() {}

  static Map<String, ?> publish(Run run) {
    return publishAndRead(run, 20, builder -> builder);
  }

  /** Sends so many messages over a connection of some kind and reads them over it. */
  static Map<String, ?> publishAndRead(Run run, int count, UnaryOperator<EnvironmentBuilder> kind) {
    var environment = run.openWithStream(kind);
    var publisher = new Publisher(environment.producerBuilder().stream(run.stream));
    publisher.sendAll(0, count);
    var arrived = run.readStream(environment, count);
    return Map.of(
        "confirmed", publisher.confirmed(), "refused", publisher.refused(),
        "read", Messages.numbers(arrived), "offsets", Messages.offsets(arrived));
  }

  static Map<String, ?> batch(Run run) {
    var environment = run.openWithStream();
    // The library has no call for many messages: it makes batches of what is sent one by one.
    var publisher =
        new Publisher(environment.producerBuilder().stream(run.stream).batchSize(100));
    publisher.sendAll(0, 1000);
    var arrived = run.readStream(environment, 1000);
    Messages.numbers(arrived);
    return Map.of(
        "confirmed", publisher.confirmed(), "refused", publisher.refused(),
        "read", Messages.summary(arrived));
  }

  static Map<String, ?> large(Run run) {
    var environment = run.openWithStream();
    var publisher = new Publisher(environment.producerBuilder().stream(run.stream));
    var sizes = List.of(1, 127, 255, 256, 4095, 65535, 65536, 1000000);
    for (int i = 0; i < sizes.size(); i++) {
      publisher.send(Messages.bodyOfSize(sizes.get(i)));
      publisher.awaitAnswers(i + 1);
    }
    var arrived = run.readStream(environment, sizes.size());
    for (var each : arrived) {
      if (!Arrays.equals(each.body(), Messages.bodyOfSize(each.body().length))) {
        throw new IllegalStateException("a wrong body of " + each.body().length + " bytes");
      }
    }
    return Map.of(
        "confirmed", publisher.confirmed(), "refused", publisher.refused(),
        "sizes", arrived.stream().map(each -> each.body().length).toList(),
        "read", Messages.summary(arrived));
  }

  static Map<String, ?> subEntries(Run run, String codec) {
    var environment = run.openWithStream();
    var publisher = sendGroups(run, environment, codec, "m", 100);
    return Map.of(
        "confirmed", publisher.confirmed(), "refused", publisher.refused(),
        "read", Messages.numbers(run.readStream(environment, 100)));
  }

  static Map<String, ?> write(Run run) {
    var publisher = sendGroups(
        run, run.openWithStream(), run.value("codec"), run.value("mark"),
        Integer.parseInt(run.value("count")));
    return Map.of("confirmed", publisher.confirmed(), "refused", publisher.refused());
  }

  static Map<String, ?> read(Run run) {
    var arrived = run.readStream(run.open(), Integer.parseInt(run.value("count")));
    arrived.forEach(each -> Messages.number(run.value("mark"), each.body()));
    return Map.of("read", Messages.summary(arrived));
  }

  /** Publishes messages in groups of ten, each confirmed before the next is sent. */
  private static Publisher sendGroups(
      Run run, Environment environment, String codec, String mark, int count) {
    var builder = environment.producerBuilder().stream(run.stream);
    var publisher = new Publisher(codec.equals("plain") ? builder : inSubEntries(builder, codec));
    for (int first = 0; first < count; first += 10) {
      publisher.sendAll(mark, first, Math.min(first + 10, count));
    }
    return publisher;
  }

  /**
   * Makes a producer send each ten messages as one sub-entry. With its dynamic batches, the
   * default, the library would make smaller ones whenever it has nothing else to do.
   */
  private static ProducerBuilder inSubEntries(ProducerBuilder builder, String codec) {
    return builder
        .subEntrySize(10)
        .batchSize(1)
        .dynamicBatch(false)
        .compression(Compression.valueOf(codec.toUpperCase(Locale.ROOT)));
  }

  static Map<String, ?> dedup(Run run) {
    var environment = run.openWithStream();
    var confirmed = new ArrayList<Integer>();
    var last = new ArrayList<Long>();
    var first = new Publisher(environment.producerBuilder().stream(run.stream).name("p"));
    first.sendWithIds(0, 10, 1);
    confirmed.add(first.confirmed());
    last.add(first.producer.getLastPublishingId());
    first.sendWithIds(106, 116, 6);
    confirmed.add(first.confirmed() - confirmed.get(0));
    last.add(first.producer.getLastPublishingId());
    first.producer.close();

    var second = new Publisher(environment.producerBuilder().stream(run.stream).name("p"));
    last.add(second.producer.getLastPublishingId());
    second.sendWithIds(215, 217, 15);
    confirmed.add(second.confirmed());
    last.add(second.producer.getLastPublishingId());
    return Map.of(
        "confirmed", confirmed, "last", last,
        "read", Messages.numbers(run.readStream(environment, 16)));
  }

  static Map<String, ?> filter(Run run) {
    var environment = run.openWithStream();
    var values = Arrays.asList("apple", "banana", null);
    var publisher = new Publisher(environment.producerBuilder().stream(run.stream)
        .filterValue(message -> values.get(Messages.number(message.getBodyAsBinary()) / 10)));
    for (int first = 0; first < 30; first += 10) {
      publisher.sendAll(first, first + 10);
    }
    var found = new LinkedHashMap<String, Object>();
    found.put("confirmed", publisher.confirmed());
    found.put("banana", readFiltered(run, environment, 10, false, "banana"));
    found.put("apple or banana", readFiltered(run, environment, 20, false, "apple", "banana"));
    found.put("banana or none", readFiltered(run, environment, 20, true, "banana"));
    return found;
  }

  private static List<Integer> readFiltered(
      Run run, Environment environment, int count, boolean unfiltered, String... values) {
    var inbox = new Inbox();
    run.consumer(environment, OffsetSpecification.first())
        .filter()
        .values(values)
        .matchUnfiltered(unfiltered)
        .postFilter(message -> true)
        .builder()
        .messageHandler(inbox)
        .build();
    return inbox.readNumbers(count);
  }
}
